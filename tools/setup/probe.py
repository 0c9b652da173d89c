# SPDX-License-Identifier: Apache-2.0
"""Ask a Vulkan loader, in this process, which devices it sees: `python3 probe.py LOADER [LAYER]`.

Prints one line a device: name, driver API version, and whether VK_KHR_cooperative_matrix is listed. With the standard
library only: set-up runs it before anything of the project is built, to learn whether a driver it installed will load.
"""

from __future__ import annotations

import ctypes
import sys


class InstanceCreateInfo(ctypes.Structure):
    _fields_ = [
        ("sType", ctypes.c_int32),
        ("pNext", ctypes.c_void_p),
        ("flags", ctypes.c_uint32),
        ("pApplicationInfo", ctypes.c_void_p),
        ("enabledLayerCount", ctypes.c_uint32),
        ("ppEnabledLayerNames", ctypes.POINTER(ctypes.c_char_p)),
        ("enabledExtensionCount", ctypes.c_uint32),
        ("ppEnabledExtensionNames", ctypes.c_void_p),
    ]


def devices(loader: str, layer: str | None = None) -> list[str]:
    """One line a device; raises OSError when the loader, a driver or the layer does not work."""
    vulkan = ctypes.CDLL(loader)
    names = (ctypes.c_char_p * 1)(layer.encode() if layer else None)
    info = InstanceCreateInfo(sType=1, enabledLayerCount=1 if layer else 0, ppEnabledLayerNames=names)
    instance = ctypes.c_void_p()
    result = vulkan.vkCreateInstance(ctypes.byref(info), None, ctypes.byref(instance))
    if result:
        raise OSError(f"vkCreateInstance gave VkResult {result}")
    count = ctypes.c_uint32()
    vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), None)
    handles = (ctypes.c_void_p * count.value)()
    vulkan.vkEnumeratePhysicalDevices(instance, ctypes.byref(count), handles)
    lines = []
    for handle in handles:
        # VkPhysicalDeviceProperties: apiVersion, driverVersion, vendorID, deviceID, deviceType, deviceName[256], ...
        properties = ctypes.create_string_buffer(4096)
        vulkan.vkGetPhysicalDeviceProperties(ctypes.c_void_p(handle), properties)
        version = int.from_bytes(properties[0:4], "little")
        name = properties[20:276].split(b"\0")[0].decode()
        total = ctypes.c_uint32()
        vulkan.vkEnumerateDeviceExtensionProperties(ctypes.c_void_p(handle), None, ctypes.byref(total), None)
        listed = ctypes.create_string_buffer(260 * total.value)  # VkExtensionProperties: char[256], uint32
        vulkan.vkEnumerateDeviceExtensionProperties(ctypes.c_void_p(handle), None, ctypes.byref(total), listed)
        matrix = b"VK_KHR_cooperative_matrix\0" in listed.raw
        numbers = f"{version >> 22 & 0x7F}.{version >> 12 & 0x3FF}.{version & 0xFFF}"
        lines.append(f"{name}, Vulkan {numbers}, cooperative matrix {'yes' if matrix else 'no'}")
    vulkan.vkDestroyInstance(instance, None)
    if not lines:
        raise OSError("the loader sees no device")
    return lines


if __name__ == "__main__":
    try:
        print("\n".join(devices(*sys.argv[1:])))
    except OSError as error:
        sys.exit(f"probe: {error}")
