package rayjobs

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mattn/go-shellwords"
)

// ErrRequest says that a job cannot be run as asked.
var ErrRequest = errors.New("rayjobs: the request")

// Request is JobSubmitRequest of the description.
type Request struct {
	Entrypoint string             `json:"entrypoint"`
	ID         string             `json:"submission_id"`
	OldID      string             `json:"job_id"` // the name of ID before Ray 2
	Env        map[string]any     `json:"runtime_env"`
	Metadata   map[string]string  `json:"metadata"`
	CPUs       float64            `json:"entrypoint_num_cpus"`
	GPUs       float64            `json:"entrypoint_num_gpus"`
	Memory     int64              `json:"entrypoint_memory"` // bytes
	Resources  map[string]float64 `json:"entrypoint_resources"`
}

// program is the first word of each entrypoint.
const program = "starling"

// commands are those that a job may be: they run until they are stopped.
var commands = [][]string{{"worker", "up"}, {"verifier", "up"}, {"fleet", "up"}}

// arguments returns the arguments of this program that a request asks for: those of its entrypoint, without a shell,
// and flags for the cores, the memory and the device that it reserves.
func (r *Request) arguments() ([]string, error) {
	if r.ID == "" {
		r.ID = r.OldID
	}
	if len(r.Entrypoint) > 16<<10 || len(r.Metadata) > 64 {
		return nil, fmt.Errorf("%w: an entrypoint has at most 16 KiB, and a job 64 entries of metadata", ErrRequest)
	}
	for key := range r.Env {
		if !strings.HasPrefix(key, "_") && key != "config" { // keys that clients of Ray add by themselves
			return nil, fmt.Errorf("%w: runtime_env has %q, and a job here has the environment of its server: leave it out",
				ErrRequest, key)
		}
	}
	if len(r.Resources) > 0 {
		return nil, fmt.Errorf("%w: entrypoint_resources: a host has cores, memory and devices, and no others", ErrRequest)
	}
	words, err := shellwords.Parse(r.Entrypoint)
	if err != nil {
		return nil, fmt.Errorf("%w: entrypoint: %w", ErrRequest, err)
	}
	if len(words) < 3 || words[0] != program || !slices.ContainsFunc(commands, func(c []string) bool {
		return slices.Equal(c, words[1:3])
	}) {
		return nil, fmt.Errorf("%w: entrypoint %q: wanted starling worker up, starling verifier up or starling fleet up, "+
			"with flags", ErrRequest, r.Entrypoint)
	}
	return r.reserve(words[1:])
}

// reserve adds flags for reserved resources. A fleet file has those of each worker.
func (r *Request) reserve(args []string) ([]string, error) {
	cores := math.Ceil(r.CPUs)
	switch {
	case !(cores >= 0 && cores < 1<<16) || !(r.GPUs >= 0 && r.GPUs <= 1) || r.Memory < 0:
		return nil, fmt.Errorf("%w: entrypoint_num_cpus %v, entrypoint_num_gpus %v, entrypoint_memory %d: wanted cores, one "+
			"device at most, and bytes", ErrRequest, r.CPUs, r.GPUs, r.Memory)
	case args[0] == "fleet" && (cores > 0 || r.GPUs > 0 || r.Memory > 0):
		return nil, fmt.Errorf("%w: resources of the workers of a fleet are in its file", ErrRequest)
	}
	if cores > 0 {
		args = append(args, "--threads", strconv.Itoa(int(cores)))
	}
	if r.Memory > 0 {
		args = append(args, "--memory", strconv.FormatInt((r.Memory+1<<20-1)>>20, 10))
	}
	named := func(a string) bool { return a == "--device" || strings.HasPrefix(a, "--device=") }
	if r.GPUs > 0 && !slices.ContainsFunc(args, named) {
		args = append(args, "--device", "auto")
	}
	return args, nil
}
