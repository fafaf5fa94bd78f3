# The image's Python packages come first.
[ -d /opt/python/bin ] && PATH="/opt/python/bin:$PATH"
[ -d "$HOME/.local/bin" ] && PATH="$HOME/.local/bin:$PATH"
export PATH
