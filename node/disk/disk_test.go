package disk

import "testing"

func TestShare(t *testing.T) {
	for text, want := range map[string]Share{
		"50%": {Percent: 50}, "100%": {Percent: 100}, "20GiB": {Bytes: 20 << 30}, "1.5MiB": {Bytes: 3 << 19},
		"500MB": {Bytes: 500e6}, "1 kB": {Bytes: 1000},
	} {
		var s, again Share
		if err := s.Set(text); err != nil || s != want {
			t.Errorf("%q: %+v, %v", text, s, err)
		}
		if err := again.Set(s.String()); err != nil || again != s {
			t.Errorf("%q is written %q and read %+v, %v", text, s.String(), again, err)
		}
	}
	for _, text := range []string{"", "0%", "101%", "-5%", "x%", "20", "GiB", "-1GiB", "0MB", "0.0001kB", "1e300TB",
		"NaNGB"} {
		var s Share
		if err := s.Set(text); err == nil {
			t.Errorf("%q is taken for %+v", text, s)
		}
	}
}

func TestOf(t *testing.T) {
	dir := t.TempDir()
	free, ok := Free(dir)
	if !ok {
		t.Skip("free space is not known here")
	}
	half := Share{Percent: 50}
	if got := half.Of(dir, 100<<40); got < 50<<40-1<<30 || got > 50<<40+free {
		t.Errorf("half of %d free and 100 TiB taken is %d", free, got)
	}
	if s := (Share{Bytes: 7}); s.Of(dir, 100) != 7 {
		t.Error("a size does not depend on the disk")
	}
	if _, ok := Free(dir + "/nowhere"); ok {
		t.Error("a folder that is not there has free space")
	}
}
