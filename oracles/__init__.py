"""What is right: formats, ULP, arithmetics and the operators' exact semantics, conditioning and bounds."""
