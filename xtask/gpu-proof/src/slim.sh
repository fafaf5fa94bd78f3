# What nothing uses, in the root file system that is the current directory.
rm -rf usr/share/bash-completion usr/share/bug usr/share/common-licenses usr/share/doc usr/share/i18n \
    usr/share/info usr/share/lintian usr/share/locale usr/share/man usr/share/perl* usr/share/systemd \
    usr/share/zoneinfo usr/share/zsh usr/lib/locale usr/lib/systemd usr/lib/udev usr/lib/*/gconv \
    usr/lib/*/perl* usr/lib/*/systemd usr/bin/perl* var/cache/* var/lib/apt/* etc/ssh/moduli
rm -rf usr/lib/python3*/ensurepip usr/lib/python3*/idlelib usr/lib/python3*/pydoc_data \
    usr/lib/python3*/test usr/lib/python3*/unittest
find usr -name __pycache__ -prune -exec rm -rf {} +

# Libraries that no program loads.
used=$(find usr -type f \( -perm /111 -o -name '*.so*' \) |
    grep -v '^usr/lib/[^/]*/[^/]*\.so[^/]*$' |
    chroot . xargs -n 1 /lib64/ld-linux-x86-64.so.2 --list 2>/dev/null |
    sed -n 's/.* => \([^ ]*\) .*/\1/p' | sort -u | xargs chroot . readlink -f)
find usr/lib -maxdepth 2 -name '*.so*' -type f | while read -r library; do
    case ${library##*/} in
        # Programs load these by themselves, and NVIDIA's libraries those of the C library.
        ld-linux* | libdl.* | libgcc_s* | libm.* | libnss_* | libpthread.* | librt.* | libutil.*) ;;
        *) echo "$used" | grep -qxF "/$library" || rm "$library" ;;
    esac
done
find usr/lib -xtype l -delete
