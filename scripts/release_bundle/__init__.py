"""Packs built binaries into a release: a bundle that `sam deploy` installs without Rust.

The packing is apart from the building, so that a test packs what it has, and the same
files give the same bytes in every folder and on every day.

`elf`         which processor a binary is for
`version`     the workspace's version, and what the changelog says of it
`template`    template.yaml, with ready packages in place of a build
`samconfig`   samconfig.toml, for each architecture's template
`archive`     zip and tar.gz without clock, owner or order of the disk
`bundle`      what a release holds, and its making
`sbom`        what each function is made of
`sums`        SHA256SUMS: written, and held against what was downloaded
"""
