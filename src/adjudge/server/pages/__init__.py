"""The pages for people: one router a file, and its template in ``templates``."""
