"""Names and messages that try to be markup, code, mathematics, templates and globs."""

HOSTILE = (
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    '"><img src=x onerror="window.hacked = 3">',
    'it\'s `quoted` "twice" & <b>bold</b>',
    "$$\\frac{1}{2}$$ \\(x\\)",
    "{{ 7 * 7 }} {% for %} [a-z]*?",
)
