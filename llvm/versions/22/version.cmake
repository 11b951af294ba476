# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# LLVM 22, as Debian 12 has it among its security updates. ../README.md says what each line means.
set(DIOMP_LLVM_SONAME libomptarget.so.22.1)
set(DIOMP_LLVM_FOLDERS "offload;openmp/runtime/src;openmp/cmake;openmp/module;cmake;llvm/cmake;llvm/utils/lit;runtimes;third-party/unittest;libc/shared;libc/src;libc/hdr;libc/include")
set(DIOMP_LLVM_BUILD_FOLDER offload)
set(DIOMP_LLVM_BUILT libomptarget.so.22.1)
# Debian's libffi.a cannot become part of a shared library, and the build of the folder alone does not look for the
# linker's option for exports. The packaged library has no OMPT, for which it would load a second libomp by another name
# where LLVM 22 is unpacked beside an installed version.
set(DIOMP_LLVM_ARGUMENTS -DOFFLOAD_INCLUDE_TESTS=OFF -DFFI_STATIC_LIBRARIES= -DLLVM_HAVE_LINK_VERSION_SCRIPT=ON
  -DLIBOMPTARGET_OMPT_SUPPORT=OFF)
# The packaged library's plugins in their order.
set(DIOMP_LLVM_PLUGINS "amdgpu|cuda|host")
set(plugin "4llvm3omp6target6plugin15GenericPluginTy")
set(DIOMP_LLVM_WRAPS "${plugin}10data_allocEilPvi" "${plugin}11data_deleteEiPvi"
  "${plugin}18isPluginCompatibleENS_9StringRefE" "${plugin}18isDeviceCompatibleEiNS_9StringRefE"
  "${plugin}11load_binaryEiP18__tgt_device_imageP19__tgt_device_binary"
  "${plugin}13launch_kernelEiPvPS4_PlP12KernelArgsTyP16__tgt_async_info"
  "${plugin}11synchronizeEiP16__tgt_async_info" "${plugin}11query_asyncEiP16__tgt_async_info"
  "${plugin}12create_eventEiPPv" "${plugin}12record_eventEiPvP16__tgt_async_info"
  "${plugin}10wait_eventEiPvP16__tgt_async_info" "${plugin}10sync_eventEiPv" "${plugin}13destroy_eventEiPv"
  "${plugin}17data_submit_asyncEiPvS4_lP16__tgt_async_info"
  "${plugin}19data_retrieve_asyncEiPvS4_lP16__tgt_async_info"
  "${plugin}13data_exchangeEiPviS4_l" "${plugin}19data_exchange_asyncEiPviS4_lP16__tgt_async_info"
  "13PluginManager11registerLibEP14__tgt_bin_desc" "13PluginManager6deinitEv")
set(DIOMP_LLVM_UPDATE "_Z16targetDataUpdateP7ident_tR8DeviceTyiPPvS4_PlS5_S4_S4_R11AsyncInfoTyP12AttachInfoTyb")
# The device runtime for GPUs, in LLVM's folder lib.
set(DIOMP_LLVM_RUNTIME_nvptx "nvptx64-nvidia-cuda/libompdevice.a")
set(DIOMP_LLVM_RUNTIME_amdgpu "amdgcn-amd-amdhsa/libompdevice.a")
