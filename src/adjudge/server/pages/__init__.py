"""What people see: one router a file, and its template in ``templates``."""
