//go:build before136

package main

import (
	_ "unsafe" // go:linkname

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

//go:linkname mergeDropIns k8s.io/kubernetes/cmd/kubelet/app.mergeKubeletConfigurations
func mergeDropIns(*kubeletconfig.KubeletConfiguration, string) error
