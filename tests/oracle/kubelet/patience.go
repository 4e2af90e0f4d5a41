package main

import (
	"syscall"
	"time"
)

// How much CPU time a step may take. A step of the heaviest case takes a small part of it; what takes more does not come back.
const patience = 10 * time.Second

const hung = "Hang"

// answered runs a step and returns its answer, or one that says that the kubelet hangs. It goes by CPU time: on a busy machine
// a step may take long. What hangs cannot be stopped, so the process ends after it.
func answered(step func() (stepAnswer, bool)) (answer stepAnswer, ended bool) {
	done := make(chan struct{})
	go func() {
		answer, ended = step()
		close(done)
	}()
	started := cpuTime()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return answer, ended
		case <-tick.C:
			if cpuTime()-started > patience {
				return stepAnswer{Reason: hung, Message: "kubelet hangs"}, true
			}
		}
	}
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
