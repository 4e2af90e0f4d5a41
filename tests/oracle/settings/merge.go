//go:build !before136

package main

import (
	_ "unsafe" // go:linkname

	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
)

//go:linkname mergeKubeletConfigurations k8s.io/kubernetes/cmd/kubelet/app.mergeKubeletConfigurations
func mergeKubeletConfigurations(*kubeletconfig.KubeletConfiguration, string) ([]string, error)

func mergeDropIns(config *kubeletconfig.KubeletConfiguration, folder string) error {
	_, err := mergeKubeletConfigurations(config, folder)
	return err
}
