# Runs inside an instance and prints NAME=VALUE lines. UUIDs of GPUs are left out.
for node in /dev/nvidia* /dev/wharf-gpu-proof-*; do
    [ -c "$node" ] || continue
    if (: <>"$node") 2>/dev/null; then echo "open=$node"; else echo "closed=$node"; fi
done
if command -v nvidia-smi >/dev/null; then
    listed=$(nvidia-smi -L 2>&1) || {
        # For a person who looks for the cause.
        ls -ln /dev/nvidia* /usr/lib/*-linux-gnu/libnvidia* /usr/lib/*-linux-gnu/libcuda*
        cat /proc/self/uid_map /proc/driver/nvidia/params
        sudo -n nvidia-smi -L | sed 's/ (UUID.*//; s/^/by root: /'
    } 2>&1
    echo "$listed" | sed 's/ (UUID.*//; s/^/smi=/'
fi
command -v python3 >/dev/null || { echo 'cuda=not tested: no python3'; exit 0; }
python3 - <<'PYTHON'
import ctypes
import time

try:
    cuda = ctypes.CDLL("libcuda.so.1")
except OSError:
    print("library=none")
    raise SystemExit


def call(name, *arguments):
    code = getattr(cuda, name)(*arguments)
    if code:
        print(f"error={name}: CUDA error {code}")
        raise SystemExit


PTX = b"""
.version 6.3
.target sm_75
.address_size 64
.visible .entry square(.param .u64 to) {
    .reg .b32 %r<6>;
    .reg .b64 %d<5>;
    ld.param.u64 %d1, [to];
    cvta.to.global.u64 %d2, %d1;
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %d3, %r4, 4;
    add.s64 %d4, %d2, %d3;
    mul.lo.s32 %r5, %r4, %r4;
    st.global.u32 [%d4], %r5;
    ret;
}
"""
COUNT = 1 << 16

start = time.monotonic()
call("cuInit", 0)
number, device, context = ctypes.c_int(), ctypes.c_int(), ctypes.c_void_p()
call("cuDeviceGetCount", ctypes.byref(number))
call("cuDeviceGet", ctypes.byref(device), 0)
name = ctypes.create_string_buffer(128)
call("cuDeviceGetName", name, len(name), device)
call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
call("cuCtxSetCurrent", context)
print(f"cuda={number.value} x {name.value.decode()}, context after {time.monotonic() - start:.2f} s")

memory, bytes_ = ctypes.c_uint64(), ctypes.c_size_t(4 * COUNT)
result = (ctypes.c_uint32 * COUNT)()
call("cuMemAlloc_v2", ctypes.byref(memory), bytes_)
call("cuMemsetD32_v2", memory, ctypes.c_uint(0x5EED), ctypes.c_size_t(COUNT))
call("cuMemcpyDtoH_v2", result, memory, bytes_)
print("memory=" + ("as written" if all(word == 0x5EED for word in result) else "wrong"))

module, function = ctypes.c_void_p(), ctypes.c_void_p()
call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
call("cuModuleGetFunction", ctypes.byref(function), module, b"square")
arguments = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.byref(memory), ctypes.c_void_p))
block = 256
call("cuLaunchKernel", function, COUNT // block, 1, 1, block, 1, 1, 0, None, arguments, None)
call("cuCtxSynchronize")
call("cuMemcpyDtoH_v2", result, memory, bytes_)
squares = all(word == n * n & 0xFFFFFFFF for n, word in enumerate(result))
print("kernel=" + (f"{COUNT} squares" if squares else "wrong"))
call("cuMemFree_v2", memory)
PYTHON
