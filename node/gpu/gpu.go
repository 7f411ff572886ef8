// Package gpu names the graphics processors of a machine, as the kernel and the drivers report them. It loads no
// driver and computes nothing on them: package accelerator has exact work computed there, and package torch tolerant
// work.
package gpu

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

// GPU is one graphics processor.
type GPU struct {
	Name      string `json:"name"`
	MemoryMiB int    `json:"memory_mib,omitempty"` // 0: not known
}

func (g GPU) String() string {
	if g.MemoryMiB == 0 {
		return g.Name
	}
	return fmt.Sprintf("%s (%d MiB)", g.Name, g.MemoryMiB)
}

// Use says what the GPUs of a machine are used for.
const Use = "exact work is computed there with --device auto if starling bench device finds no difference, and " +
	"tolerant jobs through PyTorch"

// askTimeout bounds nvidia-smi, which hangs where a driver does.
const askTimeout = 3 * time.Second

// List are the GPUs of this machine, in the order in which it counts them; none if it has none, or none is shown.
func List(ctx context.Context) []GPU {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	smi, err := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=name,memory.total",
		"--format=csv,noheader,nounits").Output()
	if err != nil {
		smi = nil
	}
	return list(os.DirFS("/"), string(smi))
}

// Files are the device files of the GPUs of this machine.
func Files() (found []string, err error) {
	for _, pattern := range []string{"dev/nvidia*", "dev/dri", "dev/kfd"} {
		paths, err := fs.Glob(os.DirFS("/"), pattern)
		if err != nil {
			return nil, fmt.Errorf("gpu: %w", err)
		}
		for _, p := range paths {
			found = append(found, "/"+p)
		}
	}
	return found, nil
}

// Folders are those that drivers of GPUs read besides device files.
var Folders = []string{"/sys/bus/pci", "/sys/class/drm", "/sys/module/nvidia", "/etc/nvidia", "/opt/rocm"}

// Chosen are the variables of the environment by which the owner of this process says which GPUs it may use. An empty
// one is among them: CUDA shows no GPU then (CUDA C++ Programming Guide, CUDA Environment Variables).
func Chosen() (env []string) {
	for _, name := range []string{"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Variables are those of the environment that are not empty, of some names, as os.Environ has them. An empty one counts
// as one that is not set: POCL takes it for a list of no devices, or for 0 threads.
func Variables(names ...string) (env []string) {
	for _, name := range names {
		if v := os.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// Text names GPUs of which some may be the same.
func Text(all []GPU) string {
	var names []string
	for i := 0; i < len(all); {
		n := i + 1
		for n < len(all) && all[n] == all[i] {
			n++
		}
		name := all[i].String()
		if n-i > 1 {
			name = fmt.Sprintf("%d x %s", n-i, name)
		}
		names = append(names, name)
		i = n
	}
	return strings.Join(names, ", ")
}

// list puts together what nvidia-smi answers, or without it what NVIDIA's driver shows, and the cards of others.
func list(root fs.FS, smi string) (all []GPU) {
	for line := range strings.Lines(smi) {
		name, memory, _ := strings.Cut(strings.TrimSpace(line), ",")
		if name == "" {
			continue
		}
		mib, _ := strconv.Atoi(strings.TrimSpace(memory)) // "[N/A]" where it is not told
		all = append(all, GPU{name, mib})
	}
	if len(all) == 0 {
		infos, _ := fs.Glob(root, "proc/driver/nvidia/gpus/*/information")
		for _, info := range infos {
			for line := range strings.Lines(text(root, info)) {
				if model, ok := strings.CutPrefix(line, "Model:"); ok {
					all = append(all, GPU{Name: strings.TrimSpace(model)})
				}
			}
		}
	}
	return append(all, cards(root, len(all) > 0)...)
}

// vendors of PCI devices.
var vendors = map[string]string{"0x10de": "NVIDIA", "0x1002": "AMD", "0x8086": "Intel"}

// cards are those of which the kernel has a driver; without those of NVIDIA, if these are known already.
func cards(root fs.FS, nvidia bool) (all []GPU) {
	dirs, _ := fs.Glob(root, "sys/class/drm/card*")
	slices.Sort(dirs)
	for _, dir := range dirs {
		if strings.Contains(path.Base(dir), "-") { // a connector
			continue
		}
		device := path.Join(dir, "device")
		vendor := vendors[text(root, path.Join(device, "vendor"))]
		if vendor == "" || vendor == "NVIDIA" && nvidia {
			continue
		}
		name := text(root, path.Join(device, "product_name"))
		if name == "" {
			name = "GPU " + strings.TrimPrefix(text(root, path.Join(device, "device")), "0x")
		}
		if !strings.HasPrefix(name, vendor) {
			name = vendor + " " + name
		}
		bytes, _ := strconv.Atoi(text(root, path.Join(device, "mem_info_vram_total"))) // of AMD alone
		all = append(all, GPU{name, bytes >> 20})
	}
	return all
}

// text is what a file holds, without the space around it; "" if it cannot be read.
func text(root fs.FS, name string) string {
	raw, err := fs.ReadFile(root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(raw))
}
