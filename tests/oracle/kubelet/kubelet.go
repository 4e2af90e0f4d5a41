package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"k8s.io/klog/v2"
	v1qos "k8s.io/kubernetes/pkg/apis/core/v1/helper/qos"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/memorymanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

// The periodic work of the CPU manager runs once, at start, and then not again in the life of a case.
const reconcilePeriod = 1000 * time.Hour

// The pods that the kubelet knows. The CPU manager's first reconciliation asks for them twice from its own goroutine; waiting
// for that keeps it from running beside an admission.
type activePods struct {
	sync.Mutex
	pods  []*v1.Pod
	asked int
}

func (a *activePods) list() []*v1.Pod {
	a.Lock()
	defer a.Unlock()
	a.asked++
	return append([]*v1.Pod(nil), a.pods...)
}

func (a *activePods) waitUntilAsked(times int) {
	for {
		a.Lock()
		asked := a.asked
		a.Unlock()
		if asked >= times {
			return
		}
		runtime.Gosched()
	}
}

func (a *activePods) add(pod *v1.Pod) {
	a.remove(string(pod.UID))
	a.pods = append(a.pods, pod)
}

func (a *activePods) remove(uid string) {
	a.Lock()
	defer a.Unlock()
	var kept []*v1.Pod
	for _, pod := range a.pods {
		if string(pod.UID) != uid {
			kept = append(kept, pod)
		}
	}
	a.pods = kept
}

type ready struct{}

func (ready) AddSource(string) {}
func (ready) AllReady() bool   { return true }

type noStatus struct{}

func (noStatus) GetPodStatus(types.UID) (v1.PodStatus, bool) { return v1.PodStatus{}, false }

type noRuntime struct{}

func (noRuntime) UpdateContainerResources(context.Context, string, *runtimeapi.ContainerResources) error {
	return nil
}

// The kubelet's resource managers on one folder of state files.
type kubelet struct {
	folder   string
	pods     activePods
	topology topologymanager.Manager
	devices  *devicemanager.ManagerImpl
	cpu      cpumanager.Manager
	memory   memorymanager.Manager
}

// start makes the managers in the order of container_manager_linux.go and starts them.
func (k *kubelet) start(ctx context.Context, machine []numaForm, config configForm, withDevices bool) error {
	logger := klog.FromContext(ctx)
	info := machineInfo(machine)
	reservation := resources(config.Reservation)
	var err error
	if k.topology, err = newTopologyManager(logger, info.Topology, config); err != nil {
		return err
	}
	socket := filepath.Join(k.folder, "plugins", "kubelet.sock")
	if k.devices, err = newDeviceManager(logger, socket, info.Topology, k.topology); err != nil {
		return err
	}
	addHintProvider(logger, k.topology, k.devices)
	reserved, err := cpuset.Parse(config.ReservedCPUs)
	if err != nil {
		return err
	}
	if k.cpu, err = newCPUManager(logger, config, info, reserved, reservation, k.folder, k.topology); err != nil {
		return err
	}
	addHintProvider(logger, k.topology, k.cpu)
	if k.memory, err = newMemoryManager(logger, config.MemoryPolicy, info, reservation, reservedMemory(config.ReservedMemory), k.folder, k.topology); err != nil {
		return err
	}
	addHintProvider(logger, k.topology, k.memory)

	k.pods.asked = 0
	if err = startCPUManager(ctx, k.cpu, k.pods.list); err != nil {
		return err
	}
	if config.CPUPolicy == string(cpumanager.PolicyStatic) {
		k.pods.waitUntilAsked(2)
	}
	if err = k.memory.Start(ctx, k.pods.list, ready{}, noStatus{}, noRuntime{}, containermap.NewContainerMap()); err != nil {
		return err
	}
	if !withDevices {
		return nil
	}
	return startDeviceManager(logger, k.devices, k.pods.list)
}

// stop ends what holds on to a socket; the other managers need no farewell.
func (k *kubelet) stop() {
	if k.devices != nil {
		_ = stopDeviceManager(k.devices)
	}
}

// report is what device plugins do after they registered: they list their devices.
func (k *kubelet) report(ctx context.Context, forms []resourceForm, registered map[string]bool) error {
	for _, form := range forms {
		if !registered[form.Resource] {
			if err := connectPlugin(ctx, k.devices, fakePlugin{form.Resource}); err != nil {
				return err
			}
			registered[form.Resource] = true
		}
		receiveDevices(ctx, k.devices, form.Resource, devices(form.Devices))
	}
	return nil
}

func (k *kubelet) admit(ctx context.Context, form podForm) (answer stepAnswer, crashed bool) {
	candidate := pod(form)
	k.pods.remove(form.UID)
	others := k.pods.list()
	k.pods.add(candidate)
	defer func() {
		if cause := recover(); cause != nil {
			answer, crashed = stepAnswer{Reason: "Panic", Message: fmt.Sprint("kubelet crashes: ", cause), Where: crashSite()}, true
		}
	}()
	result := admitPod(ctx, k.topology, candidate, others)
	if !result.Admit {
		k.pods.remove(form.UID)
	}
	answer = stepAnswer{Admit: result.Admit, Reason: result.Reason, Message: result.Message, QOS: string(v1qos.GetPodQOS(candidate))}
	k.describe(candidate, &answer)
	return answer, false
}

// describe reads what the managers hold for the pod's containers.
func (k *kubelet) describe(pod *v1.Pod, answer *stepAnswer) {
	uid := string(pod.UID)
	answer.CPUs, answer.Memory = map[string]string{}, map[string][]blockAnswer{}
	answer.Devices = map[string]map[string][][]int64{}
	for _, container := range append(append([]v1.Container(nil), pod.Spec.InitContainers...), pod.Spec.Containers...) {
		name := container.Name
		if cpus, known := k.cpu.State().GetCPUSet(uid, name); known {
			answer.CPUs[name] = cpus.String()
		}
		for _, block := range k.memory.State().GetMemoryBlocks(uid, name) {
			answer.Memory[name] = append(answer.Memory[name], blockAnswer{Numa: block.NUMAAffinity, Type: string(block.Type), Size: block.Size})
		}
		sort.Slice(answer.Memory[name], func(i, j int) bool { return answer.Memory[name][i].Type < answer.Memory[name][j].Type })
		if held := k.describeDevices(uid, name); len(held) > 0 {
			answer.Devices[name] = held
		}
	}
	answer.Shared = k.shared()
}

func (k *kubelet) describeDevices(uid, container string) map[string][][]int64 {
	held := map[string][][]int64{}
	for resource, instances := range k.devices.GetDevices(uid, container) {
		lists := [][]int64{}
		for _, device := range instances {
			ids := []int64{}
			for _, node := range device.GetTopology().GetNodes() {
				if node.ID >= 0 { // -1 stands for "the plugin named none"
					ids = append(ids, node.ID)
				}
			}
			slices.Sort(ids)
			lists = append(lists, ids)
		}
		slices.SortFunc(lists, slices.Compare[[]int64])
		held[resource] = lists
	}
	return held
}

func (k *kubelet) shared() string {
	return k.cpu.State().GetDefaultCPUSet().String()
}

func (k *kubelet) files() *stateAnswer {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(k.folder, name))
		if err != nil {
			return ""
		}
		return string(text)
	}
	return &stateAnswer{CPU: read("cpu_manager_state"), Memory: read("memory_manager_state")}
}

// crashSite names the kubelet's function that a panic came from; it is called while the panic is being recovered.
func crashSite() string {
	callers := make([]uintptr, 64)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for {
		frame, more := frames.Next()
		if at := strings.Index(frame.Function, "pkg/kubelet/cm/"); at >= 0 {
			return frame.Function[at:]
		}
		if !more {
			return ""
		}
	}
}
