package memory

import (
	"testing"
	"testing/fstest"
)

func TestRead(t *testing.T) {
	const meminfo = "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   5000 kB\n"
	for name, c := range map[string]struct {
		files            map[string]string
		available, total uint64
		ok               bool
	}{
		"a machine": {map[string]string{"proc/meminfo": meminfo}, 5000 << 10, 8000 << 10, true},
		"a container": {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "4096000\n",
			"sys/fs/cgroup/memory.current": "96000\n"}, 4000000, 4096000, true},
		"a full one": {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "1000\n",
			"sys/fs/cgroup/memory.current": "1024\n"}, 0, 1000, true},
		"without a limit": {map[string]string{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": "max\n",
			"sys/fs/cgroup/memory.current": "96000\n"}, 5000 << 10, 8000 << 10, true},
		"the old groups": {map[string]string{"proc/meminfo": meminfo,
			"sys/fs/cgroup/memory/memory.limit_in_bytes": "2048\n", "sys/fs/cgroup/memory/memory.usage_in_bytes": "48\n"}, 2000,
			2048, true},
		"another system":   {nil, 0, 0, false},
		"an old kernel":    {map[string]string{"proc/meminfo": "MemTotal: 8000 kB\n"}, 0, 0, false},
		"a line cut short": {map[string]string{"proc/meminfo": "MemTotal: 8000 kB\nMemAvailable"}, 0, 0, false},
	} {
		root := fstest.MapFS{}
		for path, text := range c.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if available, total, ok := read(root); available != c.available || total != c.total || ok != c.ok {
			t.Errorf("%s: %d of %d, %v", name, available, total, ok)
		}
	}
}
