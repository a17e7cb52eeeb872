"""The gate: did a change make anything worse? Rows against those of a baseline, or of another implementation."""
