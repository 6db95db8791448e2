"""The checks of ``mlab validate``: one module, one property that a sound task has."""
