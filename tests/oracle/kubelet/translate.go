package main

import (
	"sort"
	"strconv"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

// From the forms of cases to the types that the kubelet's managers take.

func machineInfo(nodes []numaForm) *cadvisorMachineInfo {
	info := &cadvisorMachineInfo{}
	sockets := map[int]bool{}
	for _, node := range nodes {
		info.MemoryCapacity += node.Memory
		info.NumPhysicalCores += len(node.Cores)
		for _, core := range node.Cores {
			sockets[core.Socket] = true
			info.NumCores += len(core.Threads)
		}
		info.Topology = append(info.Topology, numaNode(node))
	}
	info.NumSockets = len(sockets)
	return info
}

func numaNode(form numaForm) cadvisorNode {
	node := cadvisorNode{Id: form.ID, Memory: form.Memory, Distances: form.Distances}
	for size, pages := range form.HugePages {
		kib, err := strconv.ParseUint(size, 10, 64)
		if err != nil {
			panic("page size " + size + " is not a number of KiB")
		}
		node.HugePages = append(node.HugePages, cadvisorHugePagesInfo{PageSize: kib, NumPages: pages})
	}
	sort.Slice(node.HugePages, func(i, j int) bool { return node.HugePages[i].PageSize < node.HugePages[j].PageSize })
	for _, core := range form.Cores {
		made := cadvisorCore{Id: core.ID, Threads: core.Threads, SocketID: core.Socket}
		if core.Uncore != nil {
			made.UncoreCaches = []cadvisorCache{{Id: *core.Uncore}}
		}
		node.Cores = append(node.Cores, made)
	}
	return node
}

func resources(amounts map[string]string) v1.ResourceList {
	if len(amounts) == 0 {
		return nil
	}
	list := v1.ResourceList{}
	for name, amount := range amounts {
		list[v1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

func reservedMemory(forms []reservedMemoryForm) []kubeletconfig.MemoryReservation {
	var list []kubeletconfig.MemoryReservation
	for _, form := range forms {
		list = append(list, kubeletconfig.MemoryReservation{NumaNode: form.Numa, Limits: resources(form.Limits)})
	}
	return list
}

func pod(form podForm) *v1.Pod {
	made := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(form.UID), Name: form.UID, Namespace: "oracle"},
		Spec:       v1.PodSpec{InitContainers: containers(form.Init), Containers: containers(form.Containers)},
	}
	if form.PodRequests != nil || form.PodLimits != nil {
		made.Spec.Resources = &v1.ResourceRequirements{Requests: resources(form.PodRequests), Limits: resources(form.PodLimits)}
	}
	return made
}

func containers(forms []containerForm) []v1.Container {
	var list []v1.Container
	for _, form := range forms {
		made := v1.Container{
			Name:      form.Name,
			Resources: v1.ResourceRequirements{Requests: resources(form.Requests), Limits: resources(form.Limits)},
		}
		if form.RestartPolicy != "" {
			policy := v1.ContainerRestartPolicy(form.RestartPolicy)
			made.RestartPolicy = &policy
		}
		list = append(list, made)
	}
	return list
}

func devices(forms []deviceForm) *pluginapi.ListAndWatchResponse {
	report := &pluginapi.ListAndWatchResponse{}
	for _, form := range forms {
		device := &pluginapi.Device{ID: form.ID, Health: pluginapi.Healthy}
		if form.Unhealthy {
			device.Health = pluginapi.Unhealthy
		}
		if len(form.Numa) > 0 {
			device.Topology = &pluginapi.TopologyInfo{}
			for _, id := range form.Numa {
				device.Topology.Nodes = append(device.Topology.Nodes, &pluginapi.NUMANode{ID: id})
			}
		}
		report.Devices = append(report.Devices, device)
	}
	return report
}
