"""What must hold: regimes, properties and the pytest plugin."""
