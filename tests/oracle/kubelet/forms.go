package main

// The forms of cases and answers; tests/oracle/README.md describes them.

type coreForm struct {
	ID      int
	Socket  int
	Threads []int
	Uncore  *int
}

type numaForm struct {
	ID        int
	Memory    uint64
	HugePages map[string]uint64 // page size in KiB -> number of pages
	Distances []uint64
	Cores     []coreForm
}

type containerForm struct {
	Name          string
	Requests      map[string]string
	Limits        map[string]string
	RestartPolicy string
}

type podForm struct {
	UID         string
	Init        []containerForm
	Containers  []containerForm
	PodRequests map[string]string
	PodLimits   map[string]string
}

type reservedMemoryForm struct {
	Numa   int32
	Limits map[string]string
}

type configForm struct {
	TopologyPolicy  string
	Scope           string
	TopologyOptions map[string]string
	CPUPolicy       string
	CPUOptions      map[string]string
	ReservedCPUs    string
	Reservation     map[string]string
	MemoryPolicy    string
	ReservedMemory  []reservedMemoryForm
	Gates           map[string]bool
}

type deviceForm struct {
	ID        string
	Numa      []int64
	Unhealthy bool
}

type resourceForm struct {
	Resource string
	Devices  []deviceForm
}

type stateForm struct {
	CPU    string
	Memory string
	Pods   []podForm
}

type restartForm struct {
	Machine []numaForm
	Config  *configForm
}

type stepForm struct {
	Admit   *podForm
	Remove  string
	Devices []resourceForm
	Restart *restartForm
}

type caseForm struct {
	ID        string
	Machine   []numaForm
	Config    configForm
	Devices   []resourceForm
	State     stateForm
	Steps     []stepForm
	KeepState bool
}

type blockAnswer struct {
	Numa []int
	Type string
	Size uint64
}

type stepAnswer struct {
	Admit      bool                            `json:"admit"`
	Reason     string                          `json:"reason,omitempty"`
	Where      string                          `json:"where,omitempty"`
	Message    string                          `json:"message,omitempty"`
	QOS        string                          `json:"qos,omitempty"`
	CPUs       map[string]string               `json:"cpus,omitempty"`
	Memory     map[string][]blockAnswer        `json:"memory,omitempty"`
	Devices    map[string]map[string][][]int64 `json:"devices,omitempty"`
	Shared     string                          `json:"shared"`
	StartError string                          `json:"start_error,omitempty"`
	StartPanic string                          `json:"start_panic,omitempty"`
}

type stateAnswer struct {
	CPU    string `json:"cpu,omitempty"`
	Memory string `json:"memory,omitempty"`
}

type caseAnswer struct {
	ID         string       `json:"id"`
	StartError string       `json:"start_error,omitempty"`
	StartPanic string       `json:"start_panic,omitempty"`
	Steps      []stepAnswer `json:"steps"`
	State      *stateAnswer `json:"state,omitempty"`
}
