// How a kubelet reads its settings, on cases: one JSON object a line in, one answer a line out. tests/oracle/README.md tells the forms.
//
// It calls what `kubelet` itself calls at start, in the same order (cmd/kubelet/app/server.go), up to the container manager.
// With the argument "facts" it prints the fields of KubeletConfiguration and the feature gates of its version instead.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

type file struct{ Name, Text string }

type settingsCase struct {
	ID      string
	File    *string // text of the configuration file; null = the kubelet is given none
	DropIns []file  // null = no folder of drop-ins
	Flags   []string
	Online  []int // CPUs of the machine
}

type answer struct {
	ID        string         `json:"id"`
	Stage     string         `json:"stage,omitempty"` // where it ended; absent = it went on to the managers
	Errors    []string       `json:"errors,omitempty"`
	Panic     string         `json:"panic,omitempty"`
	Notes     []string       `json:"notes,omitempty"` // what it logged
	Effective map[string]any `json:"effective,omitempty"`
}

func main() {
	if len(os.Args) > 1 && os.Args[1] == "facts" {
		printFacts()
		return
	}
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<26)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for lines.Scan() {
		var asked settingsCase
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(read(asked)); err != nil {
			panic(err)
		}
	}
}

// read writes the case's files into a folder of its own, whose path the answers do not show.
func read(asked settingsCase) (told answer) {
	folder, err := os.MkdirTemp("", "settings")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	told.ID = asked.ID
	defer func() {
		if fault := recover(); fault != nil {
			told.Panic = fmt.Sprint(fault)
		}
	}()
	// The machine that the program runs on is not the case's: whether it still has cgroup v1 does not matter.
	arguments := []string{"--fail-cgroupv1=false"}
	if asked.File != nil {
		path := filepath.Join(folder, "config.yaml")
		must(os.WriteFile(path, []byte(*asked.File), 0o600))
		arguments = append(arguments, "--config="+path)
	}
	if asked.DropIns != nil {
		path := filepath.Join(folder, "conf.d")
		must(os.Mkdir(path, 0o700))
		for _, each := range asked.DropIns {
			must(os.WriteFile(filepath.Join(path, each.Name), []byte(each.Text), 0o600))
		}
		arguments = append(arguments, "--config-dir="+path)
	}
	start(append(arguments, asked.Flags...), asked.Online, folder, &told)
	return told
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
