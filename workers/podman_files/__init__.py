"""Private files of Podman, conmon and crun, and conmon's command line. docs/compatibility.md has the table of them."""
