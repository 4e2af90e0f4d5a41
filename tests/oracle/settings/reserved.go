//go:build !before135

package main

import (
	"unsafe"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/utils/cpuset"
)

//go:linkname getReservedCPUs k8s.io/kubernetes/cmd/kubelet/app.getReservedCPUs
func getReservedCPUs(klog.Logger, unsafe.Pointer, string) (cpuset.CPUSet, error)

func reservedCPUs(online []int, cpus string) (cpuset.CPUSet, error) {
	return getReservedCPUs(klog.Background(), machineOf(emptyMachine(topology.Discover), online), cpus)
}

// emptyMachine has the type of cAdvisor's MachineInfo, which lies in another package in each version.
func emptyMachine[M, T any](func(klog.Logger, *M) (T, error)) *M { return new(M) }
