# What the instances of the proof do not call.
rm -rf usr/bin/apt* usr/bin/cvtsudoers usr/bin/debconf* usr/bin/dpkg-* usr/bin/*ctl usr/bin/localedef \
    usr/bin/openssl usr/bin/rdma usr/bin/scp usr/bin/sftp usr/bin/sqv usr/bin/ss usr/bin/ssh-a* \
    usr/bin/ssh-keyscan usr/bin/sudoreplay usr/bin/systemd-* usr/bin/tic usr/bin/tini-static \
    usr/lib/apt usr/lib/dpkg usr/lib/openssh/*-helper usr/lib/openssh/ssh-keysign usr/lib/*/engines-3 \
    usr/lib/python3*/asyncio usr/lib/python3*/config-* usr/lib/python3*/email usr/sbin/bridge \
    usr/sbin/dcb usr/sbin/devlink usr/sbin/ldconfig usr/sbin/rtmon usr/sbin/sudo_* usr/sbin/tc \
    usr/sbin/tipc usr/sbin/vdpa usr/sbin/visudo usr/sbin/zic usr/share/gcc usr/share/keyrings \
    usr/share/python3 var/lib/dpkg/info
find usr/lib/python3*/lib-dynload -type f -not -name '_ctypes.*' -delete
