package folder

import (
	"errors"
	"testing"
)

func TestLockKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	unlock, err := Lock(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Lock(dir); !errors.Is(err, ErrInUse) {
		t.Errorf("a second lock: %v", err)
	}
	if err := unlock(); err != nil {
		t.Fatal(err)
	}
	if unlock, err = Lock(dir); err != nil {
		t.Fatal(err)
	}
	_ = unlock()
}
