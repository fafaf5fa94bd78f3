# What an engine does not call.
rm -rf usr/bin/apt* usr/bin/btrfs-* usr/bin/btrfstune usr/bin/debconf* usr/bin/dirmngr* usr/bin/dpkg-* \
    usr/bin/gpg* usr/bin/iconv usr/bin/infocmp usr/bin/localedef usr/bin/pinentry* usr/bin/rdma usr/bin/scp \
    usr/bin/sftp usr/bin/sqv usr/bin/ss usr/bin/ssh-a* usr/bin/ssh-keyscan usr/bin/tic usr/bin/top \
    usr/lib/apt usr/lib/dpkg usr/lib/gnupg usr/lib/openssh usr/lib/podman/aardvark-dns \
    usr/lib/podman/netavark-* usr/lib/python3* usr/lib/*/gio usr/lib/*/glib-2.0 usr/lib/*/krb5 \
    usr/lib/*/sasl2 usr/lib/*/security usr/libexec usr/sbin/agetty usr/sbin/blkid usr/sbin/bridge \
    usr/sbin/dcb usr/sbin/devlink usr/sbin/genl usr/sbin/ldconfig usr/sbin/mkswap usr/sbin/rtmon \
    usr/sbin/tc usr/sbin/tipc usr/sbin/vdpa usr/sbin/zic usr/sbin/zramctl usr/share/ca-certificates \
    usr/share/gcc usr/share/gnupg usr/share/initramfs-tools usr/share/keyrings var/lib/dpkg/info
