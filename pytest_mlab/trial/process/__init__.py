"""Processes of a trial: the fork server that starts them and the watch that ends them."""
