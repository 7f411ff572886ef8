package doctor

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/starling-network/starling/compute/kernel"
	space "github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/gpu"
	"github.com/starling-network/starling/node/memory"
)

func version(_ context.Context, o Options) Finding {
	return Finding{Level: OK, Text: fmt.Sprintf("starling %s, numerics %d, %s, %s/%s", o.Version, kernel.Newest,
		runtime.Version(), runtime.GOOS, runtime.GOARCH)}
}

func processor(context.Context, Options) Finding {
	model := field("/proc/cpuinfo", "model name")
	if model == "" {
		model = runtime.GOARCH + " processor"
	}
	f := Finding{Level: OK, Text: fmt.Sprintf("%s, %d threads, kernels %s", model, kernel.Cores, kernel.Active())}
	switch {
	case kernel.Active() != kernel.Best():
		f.Level, f.Fix = Warn, fmt.Sprintf("unset STARLING_KERNELS: the kernels %s run here and are faster", kernel.Best())
	case !kernel.Best().Floats():
		f.Level, f.Fix = Warn, "use a processor with AVX2: the portable kernels are some hundred times slower"
	}
	return f
}

func graphics(ctx context.Context, _ Options) Finding {
	all := gpu.List(ctx)
	if len(all) == 0 {
		return Finding{Level: OK, Text: "none found; exact work needs none"}
	}
	return Finding{Level: OK, Text: gpu.Text(all) + ": " + gpu.Use}
}

func ram(context.Context, Options) Finding {
	available, total, ok := memory.Available()
	if !ok {
		return Finding{Level: OK, Text: "unknown on " + runtime.GOOS}
	}
	return least(available, gibibyte/2, 2*gibibyte, fmt.Sprintf("%s available of %s", gib(available), gib(total)),
		"end other programs, or train smaller models")
}

// field is the first value that a file of "name : value" lines has under the name, or "".
func field(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	for s := bufio.NewScanner(f); s.Scan(); {
		if key, value, ok := strings.Cut(s.Text(), ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// disk asks about the folder, or the nearest one above it that exists, and writes to it.
func disk(_ context.Context, o Options) Finding {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return Finding{Level: Fail, Text: err.Error(), Fix: "give a folder with --dir"}
	}
	for {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			break
		}
		if filepath.Dir(dir) == dir {
			return Finding{Level: Fail, Text: "there is no folder " + dir, Fix: "give a folder with --dir"}
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".starling-doctor-*")
	if err != nil {
		return Finding{Level: Fail, Text: err.Error(), Fix: "give a folder that may be written to with --dir"}
	}
	f.Close()
	os.Remove(f.Name())
	n, ok := space.Free(dir)
	if !ok {
		return Finding{Level: OK, Text: dir + " can be written to; free space unknown on " + runtime.GOOS}
	}
	return least(uint64(n), gibibyte, 10*gibibyte, fmt.Sprintf("%s free in %s", gib(uint64(n)), dir),
		"free some space, or give another folder with --dir")
}

// earliest is before this program was written: a clock that shows less was never set.
var earliest = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clockAt says whether a clock was ever set.
func clockAt(now time.Time) Finding {
	f := Finding{Level: OK, Text: now.UTC().Format(time.RFC3339)}
	if now.Before(earliest) || now.After(earliest.AddDate(50, 0, 0)) {
		f.Level, f.Fix = Fail, "set the clock, best by NTP: blocks and certificates carry the time"
	}
	return f
}
