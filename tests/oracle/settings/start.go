package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unsafe"

	"github.com/go-logr/logr/funcr"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/klog/v2"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/kubernetes/cmd/kubelet/app/options"
	"k8s.io/kubernetes/pkg/features"
	kubeletconfig "k8s.io/kubernetes/pkg/kubelet/apis/config"
	kubeletscheme "k8s.io/kubernetes/pkg/kubelet/apis/config/scheme"
	"k8s.io/kubernetes/pkg/kubelet/apis/config/validation"
	"k8s.io/kubernetes/pkg/kubelet/cm"
	"k8s.io/kubernetes/pkg/kubelet/eviction"
)

// Gates as they are before anybody set one.
var pristine = utilfeature.DefaultMutableFeatureGate.DeepCopy()

// start does what the kubelet's command does with its arguments.
func start(arguments []string, online []int, folder string, told *answer) {
	fail := func(stage string, err error) {
		told.Stage = stage
		var many utilerrors.Aggregate
		if stage == "validate" && errors.As(err, &many) {
			for _, each := range many.Errors() {
				told.Errors = append(told.Errors, each.Error())
			}
		} else {
			told.Errors = []string{strings.ReplaceAll(err.Error(), folder, "")}
		}
	}
	gates := pristine.DeepCopy()
	utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate = gates, gates
	logger := funcr.New(func(_, text string) {
		if strings.Contains(text, "lenient") {
			told.Notes = append(told.Notes, text)
		}
	}, funcr.Options{})
	ctx := klog.NewContext(context.Background(), logger)

	flags := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	kubeletFlags := options.NewKubeletFlags()
	config, err := options.NewKubeletConfiguration()
	must(err)
	kubeletFlags.AddFlags(flags)
	options.AddKubeletConfigFlags(flags, config)
	options.AddGlobalFlags(flags)
	flags.BoolP("help", "h", false, "")

	if err := flags.Parse(arguments); err != nil {
		fail("flags", err)
		return
	}
	if rest := flags.Args(); len(rest) > 0 {
		fail("flags", errors.New("unknown command "+rest[0]))
		return
	}
	if err := gates.SetFromMap(config.FeatureGates); err != nil {
		fail("gates", err)
		return
	}
	if err := options.ValidateKubeletFlags(kubeletFlags); err != nil {
		fail("flags", err)
		return
	}
	if kubeletFlags.KubeletConfigFile != "" {
		if config, err = loadConfigFile(ctx, kubeletFlags.KubeletConfigFile); err != nil {
			fail("load", err)
			return
		}
	}
	if kubeletFlags.KubeletDropinConfigDirectory != "" {
		if err := mergeDropIns(config, kubeletFlags.KubeletDropinConfigDirectory); err != nil {
			fail("merge", err)
			return
		}
	}
	if kubeletFlags.KubeletConfigFile != "" || kubeletFlags.KubeletDropinConfigDirectory != "" {
		if err := kubeletConfigFlagPrecedence(config, arguments); err != nil {
			fail("flags", err)
			return
		}
		if err := gates.SetFromMap(config.FeatureGates); err != nil {
			fail("gates", err)
			return
		}
	}
	if err := validation.ValidateKubeletConfiguration(config, gates); err != nil {
		fail("validate", err)
		return
	}
	if err := reserve(config, online); err != nil {
		fail("run", err)
		return
	}
	told.Effective = effective(config)
}

// reserve is what `run` does with the settings before it makes the container manager.
func reserve(config *kubeletconfig.KubeletConfiguration, online []int) error {
	reserved, err := reservedCPUs(online, config.ReservedSystemCPUs)
	if err != nil {
		return err
	}
	if reserved.Size() > 0 {
		delete(config.KubeReserved, "cpu")
		if config.SystemReserved == nil {
			config.SystemReserved = map[string]string{}
		}
		config.SystemReserved["cpu"] = strconv.Itoa(reserved.Size())
	}
	if _, err := parseResourceList(config.KubeReserved); err != nil {
		return errors.New("--kube-reserved value failed to parse: " + err.Error())
	}
	if _, err := parseResourceList(config.SystemReserved); err != nil {
		return errors.New("--system-reserved value failed to parse: " + err.Error())
	}
	if _, err := eviction.ParseThresholdConfig([]string{}, config.EvictionHard, nil, nil, nil); err != nil {
		return err
	}
	if _, err := cm.ParseQOSReserved(config.QOSReserved); err != nil {
		return errors.New("--qos-reserved value failed to parse: " + err.Error())
	}
	if !utilfeature.DefaultFeatureGate.Enabled(features.TopologyManagerPolicyOptions) && config.TopologyManagerPolicyOptions != nil {
		return fmt.Errorf("topology manager policy options %v require feature gates %q enabled",
			config.TopologyManagerPolicyOptions, features.TopologyManagerPolicyOptions)
	}
	return nil
}

var shown = []string{
	"cpuManagerPolicy", "cpuManagerPolicyOptions", "memoryManagerPolicy", "topologyManagerPolicy", "topologyManagerScope",
	"topologyManagerPolicyOptions", "reservedSystemCPUs", "reservedMemory", "kubeReserved", "systemReserved", "evictionHard",
	"enforceNodeAllocatable", "featureGates", "memoryThrottlingFactor", "memoryReservationPolicy",
}

func effective(config *kubeletconfig.KubeletConfiguration) map[string]any {
	scheme, _, err := kubeletscheme.NewSchemeAndCodecs()
	must(err)
	versioned := &kubeletv1beta1.KubeletConfiguration{}
	must(scheme.Convert(config, versioned, nil))
	text, err := json.Marshal(versioned)
	must(err)
	all := map[string]any{}
	must(json.Unmarshal(text, &all))
	kept := map[string]any{}
	for _, name := range shown {
		if value, ok := all[name]; ok {
			kept[name] = value
		}
	}
	return kept
}

// machineOf fills a MachineInfo with one NUMA node and a core for each CPU.
func machineOf[M any](machine *M, online []int) unsafe.Pointer {
	cores := []map[string]any{}
	for _, cpu := range online {
		cores = append(cores, map[string]any{"core_id": cpu, "thread_ids": []int{cpu}})
	}
	text, err := json.Marshal(map[string]any{
		"num_cores": len(online), "num_physical_cores": len(online), "num_sockets": 1,
		"topology": []map[string]any{{"cores": cores}},
	})
	must(err)
	must(json.Unmarshal(text, machine))
	return unsafe.Pointer(machine)
}
