"""GPU code inside a host file: fatbinary containers, their images, who made them.

``reader`` lists the images natively, ``provenance`` names the toolkits that made them, and
``cuobjdump`` asks NVIDIA's own tool for a second opinion. Nothing is imported here, so that
``python -m fa_forensics.facts.fatbin`` starts with the reader alone.
"""
