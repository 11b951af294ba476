# SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
# What the files version.cmake up to 21 share.
# The packaged library's plugins in their order.
set(DIOMP_LLVM_PLUGINS "amdgpu|cuda|host")
set(plugin "4llvm3omp6target6plugin15GenericPluginTy")
set(DIOMP_LLVM_WRAPS "${plugin}10data_allocEilPvi" "${plugin}11data_deleteEiPvi"
  "${plugin}20is_plugin_compatibleEP18__tgt_device_image" "${plugin}20is_device_compatibleEiP18__tgt_device_image"
  "${plugin}11load_binaryEiP18__tgt_device_imageP19__tgt_device_binary"
  "${plugin}13launch_kernelEiPvPS4_PlP12KernelArgsTyP16__tgt_async_info"
  "${plugin}11synchronizeEiP16__tgt_async_info" "${plugin}11query_asyncEiP16__tgt_async_info"
  "${plugin}12create_eventEiPPv" "${plugin}12record_eventEiPvP16__tgt_async_info"
  "${plugin}10wait_eventEiPvP16__tgt_async_info" "${plugin}10sync_eventEiPv" "${plugin}13destroy_eventEiPv"
  "${plugin}17data_submit_asyncEiPvS4_lP16__tgt_async_info"
  "${plugin}19data_retrieve_asyncEiPvS4_lP16__tgt_async_info"
  "${plugin}13data_exchangeEiPviS4_l" "${plugin}19data_exchange_asyncEiPviS4_lP16__tgt_async_info"
  "13PluginManager11registerLibEP14__tgt_bin_desc" "13PluginManager6deinitEv")
set(DIOMP_LLVM_UPDATE "_Z16targetDataUpdateP7ident_tR8DeviceTyiPPvS4_PlS5_S4_S4_R11AsyncInfoTyb")
