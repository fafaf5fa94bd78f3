# A greeting for people at a terminal. ~/.hushlogin switches it off.
case $- in
    *i*) [ -e "$HOME/.hushlogin" ] || /usr/local/lib/wharf/greeting ;;
esac
