"""Loads the plugin that parametrises the property suite (``--impls FILE``, ``--impl GLOB``, ``--op NAME``)."""

pytest_plugins = ["properties.plugin"]
