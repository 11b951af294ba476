# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# LLVM 21, as Debian 13's backports have it. ../README.md says what each line means.
set(DIOMP_LLVM_SONAME libomptarget.so.21.1)
set(DIOMP_LLVM_FOLDERS "offload;openmp/runtime/src;openmp/cmake;cmake;llvm/cmake;llvm/utils/lit;runtimes;third-party/unittest;libc/shared;libc/src;libc/hdr;libc/include")
set(DIOMP_LLVM_BUILD_FOLDER offload)
set(DIOMP_LLVM_BUILT libomptarget.so.21.1)
# As for 22: libffi's archive, the linker's option for exports, and OMPT, which the packaged library does not have.
set(DIOMP_LLVM_ARGUMENTS -DOFFLOAD_INCLUDE_TESTS=OFF -DFFI_STATIC_LIBRARIES= -DLLVM_HAVE_LINK_VERSION_SCRIPT=ON
  -DLIBOMPTARGET_OMPT_SUPPORT=OFF -DLIBOMPTARGET_BUILD_DEVICERTL_BCLIB=OFF)
# The packaged library's plugins in their order.
set(DIOMP_LLVM_PLUGINS "amdgpu|cuda|host")
set(plugin "4llvm3omp6target6plugin15GenericPluginTy")
set(DIOMP_LLVM_WRAPS "${plugin}10data_allocEilPvi" "${plugin}11data_deleteEiPvi"
  "${plugin}20is_plugin_compatibleEP18__tgt_device_image" "${plugin}20is_device_compatibleEiP18__tgt_device_image"
  "${plugin}11load_binaryEiP18__tgt_device_imageP19__tgt_device_binary"
  "${plugin}13launch_kernelEiPvPS4_PlP12KernelArgsTyP16__tgt_async_info"
  "${plugin}11synchronizeEiP16__tgt_async_info" "${plugin}11query_asyncEiP16__tgt_async_info"
  "13PluginManager11registerLibEP14__tgt_bin_desc" "13PluginManager6deinitEv")
# The device runtime for GPUs, in LLVM's folder lib.
set(DIOMP_LLVM_RUNTIME_nvptx "nvptx64-nvidia-cuda/libompdevice.a")
set(DIOMP_LLVM_RUNTIME_amdgpu "amdgcn-amd-amdhsa/libompdevice.a")
