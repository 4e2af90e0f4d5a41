//go:build !before135

package main

import (
	"context"
	_ "unsafe" // for the link to newDeviceManager

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

// The device manager's public constructor knows one folder only, the one below /var/lib/kubelet; this one takes a socket.
//
//go:linkname newDeviceManager k8s.io/kubernetes/pkg/kubelet/cm/devicemanager.newManagerImpl
func newDeviceManager(klog.Logger, string, []cadvisorNode, topologymanager.Store) (*devicemanager.ManagerImpl, error)

func addHintProvider(logger klog.Logger, topology topologymanager.Manager, provider topologymanager.HintProvider) {
	topology.AddHintProvider(logger, provider)
}

func newCPUManager(logger klog.Logger, config configForm, machine *cadvisorMachineInfo, reserved cpuset.CPUSet, reservation v1.ResourceList, folder string, store topologymanager.Store) (cpumanager.Manager, error) {
	return cpumanager.NewManager(logger, config.CPUPolicy, config.CPUOptions, reconcilePeriod, machine, reserved, reservation, folder, store)
}

func newMemoryManager(logger klog.Logger, policy string, machine *cadvisorMachineInfo, reservation v1.ResourceList, reserved []kubeletconfig.MemoryReservation, folder string, store topologymanager.Store) (memorymanager.Manager, error) {
	return memorymanager.NewManager(logger, policy, machine, reservation, reserved, folder, store)
}

func startCPUManager(ctx context.Context, manager cpumanager.Manager, pods func() []*v1.Pod) error {
	return manager.Start(ctx, pods, ready{}, noStatus{}, noRuntime{}, containermap.NewContainerMap())
}

func startDeviceManager(logger klog.Logger, manager *devicemanager.ManagerImpl, pods func() []*v1.Pod) error {
	return manager.Start(logger, pods, ready{}, containermap.NewContainerMap(), sets.New[string]())
}

func stopDeviceManager(manager *devicemanager.ManagerImpl) error {
	return manager.Stop(klog.Background())
}

func connectPlugin(ctx context.Context, manager *devicemanager.ManagerImpl, plugin fakePlugin) error {
	return manager.PluginConnected(ctx, plugin.resource, plugin)
}

func receiveDevices(ctx context.Context, manager *devicemanager.ManagerImpl, resource string, report *pluginapi.ListAndWatchResponse) {
	manager.PluginListAndWatchReceiver(klog.FromContext(ctx), resource, report)
}
