"""The look of pages and reports: one stylesheet, the parts of every page, and what fills them in safely."""
