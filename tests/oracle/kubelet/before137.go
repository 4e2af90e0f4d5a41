//go:build before137

package main

import (
	"context"

	cadvisorapi "github.com/google/cadvisor/info/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

type (
	cadvisorMachineInfo   = cadvisorapi.MachineInfo
	cadvisorNode          = cadvisorapi.Node
	cadvisorHugePagesInfo = cadvisorapi.HugePagesInfo
	cadvisorCore          = cadvisorapi.Core
	cadvisorCache         = cadvisorapi.Cache
)

func newTopologyManager(_ klog.Logger, nodes []cadvisorNode, config configForm) (topologymanager.Manager, error) {
	return topologymanager.NewManager(nodes, config.TopologyPolicy, config.Scope, config.TopologyOptions)
}

func admitPod(_ context.Context, topology topologymanager.Manager, pod *v1.Pod, others []*v1.Pod) lifecycle.PodAdmitResult {
	return topology.Admit(&lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others})
}
