package run

// Source: Linux 6.1, arch/x86/entry/syscalls/syscall_64.tbl; include/uapi/linux/audit.h.
const wantNumbers = "0xc000003e [2 4 6 21 89 257 437 262 332 269 439 267 191 192 194 195] [0 1 20 32 72 16 317]"
