"""placeholder"""
def add_verb(which): pass
