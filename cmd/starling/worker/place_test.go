package worker

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/provider"
	"github.com/starling-network/starling/node/rundir"
)

func TestTooLittleRoom(t *testing.T) {
	home := filepath.Join(t.TempDir(), "not", "there")
	small := &provider.Options{Home: home, Disk: disk.Share{Bytes: 50_000_000}}
	if text := tooLittleRoom(small); !strings.Contains(text, "50.0 MB") || !strings.Contains(text, "100 MB") {
		t.Errorf("a small disk: %q", text)
	}
	if text := tooLittleRoom(&provider.Options{Home: home, Disk: disk.Share{Bytes: 1 << 30}}); text != "" {
		t.Errorf("a disk that is large enough: %q", text)
	}
	if err := os.MkdirAll(filepath.Join(home, rundir.DirBlobs), 0o700); err != nil {
		t.Fatal(err)
	}
	if text := tooLittleRoom(&provider.Options{Home: home, Disk: disk.Share{Percent: 50}}); text != "" {
		t.Errorf("a folder with blobs: %q", text)
	}
}
