# A function of one argument, the address of a state: it sets every register as the state says, calls its target, and
# writes them back. General registers, flags, target, the sequence's stack and this function's; from 512 on what fxsave
# writes, from 1024 vectors of 64 bytes, from 3072 masks. WIDE: whether there are zmm registers.

.intel_syntax noprefix
  push rbx
  push rbp
  push r12
  push r13
  push r14
  push r15
  lea r15, [rdi+4096]
  mov qword ptr [r15-4096+136], rsp
  fxrstor [r15-4096+512]
.if WIDE
.irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  vmovups zmm\i, zmmword ptr [r15-4096+1024+64*\i]
.endr
.irp i, 0,1,2,3,4,5,6,7
  kmovq k\i, qword ptr [r15-4096+3072+8*\i]
.endr
.else
.irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  vmovups ymm\i, ymmword ptr [r15-4096+1024+64*\i]
.endr
.endif
  mov rsp, qword ptr [r15-4096+128]
  mov rax, qword ptr [r15-4096+0]
  mov rbx, qword ptr [r15-4096+8]
  mov rcx, qword ptr [r15-4096+16]
  mov rdx, qword ptr [r15-4096+24]
  mov rsi, qword ptr [r15-4096+32]
  mov rdi, qword ptr [r15-4096+40]
  mov rbp, qword ptr [r15-4096+48]
  mov r8, qword ptr [r15-4096+56]
  mov r9, qword ptr [r15-4096+64]
  mov r10, qword ptr [r15-4096+72]
  mov r11, qword ptr [r15-4096+80]
  mov r13, qword ptr [r15-4096+88]
  mov r12, qword ptr [r15-4096+96]
  mov r14, qword ptr [r15-4096+104]
  push qword ptr [r15-4096+112]
  popfq
  call qword ptr [r15-4096+120]
  mov qword ptr [r15-4096+0], rax
  mov qword ptr [r15-4096+8], rbx
  mov qword ptr [r15-4096+16], rcx
  mov qword ptr [r15-4096+24], rdx
  mov qword ptr [r15-4096+32], rsi
  mov qword ptr [r15-4096+40], rdi
  mov qword ptr [r15-4096+48], rbp
  mov qword ptr [r15-4096+56], r8
  mov qword ptr [r15-4096+64], r9
  mov qword ptr [r15-4096+72], r10
  mov qword ptr [r15-4096+80], r11
  mov qword ptr [r15-4096+88], r13
  mov qword ptr [r15-4096+96], r12
  mov qword ptr [r15-4096+104], r14
  pushfq
  pop qword ptr [r15-4096+112]
  fxsave [r15-4096+512]
.if WIDE
.irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
  vmovups zmmword ptr [r15-4096+1024+64*\i], zmm\i
.endr
.irp i, 0,1,2,3,4,5,6,7
  kmovq qword ptr [r15-4096+3072+8*\i], k\i
.endr
.else
.irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
  vmovups ymmword ptr [r15-4096+1024+64*\i], ymm\i
.endr
.endif
  mov rsp, qword ptr [r15-4096+136]
  push 0x202
  popfq
  fninit
  push 0x1f80
  ldmxcsr dword ptr [rsp]
  pop rax
  vzeroupper
  pop r15
  pop r14
  pop r13
  pop r12
  pop rbp
  pop rbx
  ret
