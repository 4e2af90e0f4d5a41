// Command kubelet answers NUMA admission cases with the kubelet's own resource managers: one JSON case a line on standard
// input, one JSON answer a line on standard output. tests/oracle/README.md describes both.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strings"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
)

const lineBuffer = 1 << 24

// Where a kubelet keeps its state files, unless told otherwise.
const rootDirectory = "/var/lib/kubelet"

// The exit code of a process that answered a case in which the kubelet hangs; the cases after it were not asked.
const afterHang = 3

func main() {
	silence()
	cases := json.NewDecoder(bufio.NewReaderSize(os.Stdin, lineBuffer))
	written := bufio.NewWriter(os.Stdout)
	answers := json.NewEncoder(written)
	for {
		var form caseForm
		if err := cases.Decode(&form); err == io.EOF {
			return
		} else if err != nil {
			fmt.Fprintln(os.Stderr, "no case:", err)
			os.Exit(2)
		}
		answer := judge(form)
		if err := answers.Encode(answer); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		written.Flush()
		if last := len(answer.Steps) - 1; last >= 0 && answer.Steps[last].Reason == hung {
			os.Exit(afterHang)
		}
	}
}

func silence() {
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	_ = flags.Set("logtostderr", "false")
	_ = flags.Set("stderrthreshold", "FATAL")
	klog.SetOutput(io.Discard)
}

// judge plays one case on a folder of its own.
func judge(form caseForm) caseAnswer {
	folder, err := os.MkdirTemp("", "oracle")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	write(folder, "cpu_manager_state", form.State.CPU)
	write(folder, "memory_manager_state", form.State.Memory)
	play := &play{form: form, kubelet: &kubelet{folder: folder}, registered: map[string]bool{}}
	defer func() { play.kubelet.stop() }()
	for _, known := range form.State.Pods {
		play.kubelet.pods.add(pod(known))
	}
	answer := caseAnswer{ID: form.ID}
	if answer.StartError, answer.StartPanic = play.start(); answer.StartError == "" && answer.StartPanic == "" {
		answer.Steps = play.steps()
	}
	if form.KeepState {
		answer.State = play.kubelet.files()
	}
	return answer
}

func write(folder, name, text string) {
	if text == "" {
		return
	}
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		panic(err)
	}
}

type play struct {
	form       caseForm
	kubelet    *kubelet
	registered map[string]bool
}

// start brings the kubelet up with the feature gates of the case, which are global to the process.
func (p *play) start() (failure, crash string) {
	defer func() {
		if cause := recover(); cause != nil {
			crash = fmt.Sprint(cause)
		}
	}()
	if err := p.bringUp(context.Background()); err != nil {
		return strings.ReplaceAll(err.Error(), p.kubelet.folder, rootDirectory), ""
	}
	return "", ""
}

func (p *play) bringUp(ctx context.Context) error {
	if err := setGates(p.form.Config.Gates); err != nil {
		return err
	}
	if err := p.kubelet.start(ctx, p.form.Machine, p.form.Config, p.hasDevices()); err != nil {
		return err
	}
	return p.kubelet.report(ctx, p.form.Devices, p.registered)
}

func (p *play) hasDevices() bool {
	if len(p.form.Devices) > 0 {
		return true
	}
	for _, step := range p.form.Steps {
		if len(step.Devices) > 0 {
			return true
		}
	}
	return false
}

func (p *play) steps() []stepAnswer {
	var answers []stepAnswer
	for _, step := range p.form.Steps {
		answer, ended := answered(func() (stepAnswer, bool) { return p.step(step) })
		answers = append(answers, answer)
		if ended {
			break
		}
	}
	return answers
}

func (p *play) step(step stepForm) (answer stepAnswer, ended bool) {
	switch {
	case step.Admit != nil:
		return p.kubelet.admit(context.Background(), *step.Admit)
	case step.Restart != nil:
		return p.restart(*step.Restart)
	case step.Devices != nil:
		p.remember(step.Devices)
		if err := p.kubelet.report(context.Background(), step.Devices, p.registered); err != nil {
			panic(err)
		}
	default:
		p.kubelet.pods.remove(step.Remove)
	}
	return stepAnswer{Admit: true, Shared: p.kubelet.shared()}, false
}

// remember keeps the newest report of each resource, for the plugins that register again after a restart.
func (p *play) remember(reports []resourceForm) {
	newest := map[string]resourceForm{}
	for _, report := range append(append([]resourceForm(nil), p.form.Devices...), reports...) {
		newest[report.Resource] = report
	}
	p.form.Devices = nil
	for _, report := range newest {
		p.form.Devices = append(p.form.Devices, report)
	}
	sort.Slice(p.form.Devices, func(i, j int) bool { return p.form.Devices[i].Resource < p.form.Devices[j].Resource })
}

func (p *play) restart(step restartForm) (answer stepAnswer, ended bool) {
	p.kubelet.stop()
	if step.Machine != nil {
		p.form.Machine = step.Machine
	}
	if step.Config != nil {
		p.form.Config = *step.Config
	}
	known := p.kubelet.pods.list()
	p.kubelet = &kubelet{folder: p.kubelet.folder}
	p.kubelet.pods.pods = known
	p.registered = map[string]bool{}
	if answer.StartError, answer.StartPanic = p.start(); answer.StartError != "" || answer.StartPanic != "" {
		return answer, true
	}
	return stepAnswer{Admit: true, Shared: p.kubelet.shared()}, false
}

// setGates gives the process feature gates of its own, with their defaults and those of the case.
func setGates(gates map[string]bool) error {
	copied := pristine.DeepCopy()
	utilfeature.DefaultMutableFeatureGate, utilfeature.DefaultFeatureGate = copied, copied
	return copied.SetFromMap(gates)
}

var pristine = utilfeature.DefaultMutableFeatureGate.DeepCopy()
