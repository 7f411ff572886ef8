package node_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/starling-network/starling/client/endpoint"
	"github.com/starling-network/starling/internal/porttest"
	"github.com/starling-network/starling/node/disk"
	"github.com/starling-network/starling/node/folder"
	"github.com/starling-network/starling/node/inspect"
	"github.com/starling-network/starling/node/keystore"
	"github.com/starling-network/starling/node/validator"
)

// A validator whose disk has too little room reports that, in its log and in its status, and waits without a chain.
func TestValidatorWithoutRoom(t *testing.T) {
	dir := t.TempDir()
	free, ok := disk.Free(dir)
	if !ok {
		t.Skip("free space is not known here")
	}
	if err := folder.WriteJSON(filepath.Join(dir, keystore.FileValidator),
		keystore.ValidatorFile{ChainID: "c", RPC: "127.0.0.1:1"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan string, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- validator.Run(ctx, validator.Options{Home: dir, Reserve: 2 * free, Say: func(s string) { said <- s }})
	}()
	if line := <-said; !strings.HasPrefix(line, "DISK_FULL: ") {
		t.Errorf("it said %q", line)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}

	o := validator.Options{Home: dir, Reserve: 1, Say: func(s string) { said <- s }}
	if err := folder.WriteJSON(filepath.Join(dir, keystore.FileStopped),
		endpoint.Halted{Code: "DISK_FULL", Why: "why"}); err != nil {
		t.Fatal(err)
	}
	stopped := (*endpoint.Halted)(nil)
	if _, err := inspect.AskValidator(t.Context(), dir); !errors.As(err, &stopped) || stopped.Code != "DISK_FULL" ||
		stopped.Why != "why" {
		t.Errorf("its status: %v", err)
	}
	if err := o.AwaitRoom(t.Context(), "127.0.0.1:1"); !errors.Is(err, validator.ErrRoomAgain) {
		t.Errorf("with room: %v", err)
	}
	if _, err := inspect.AskValidator(t.Context(), dir); errors.As(err, &stopped) {
		t.Errorf("its status with room: %v", err)
	}
}

// A status request to a stopped validator is answered with the reason, even if its disk cannot take a file.
func TestStoppedValidatorAnswers(t *testing.T) {
	dir := t.TempDir()
	free, ok := disk.Free(dir)
	if !ok {
		t.Skip("free space is not known here")
	}
	address := porttest.Address(t)
	if err := errors.Join(os.Mkdir(filepath.Join(dir, keystore.FileStopped), 0o755),
		folder.WriteJSON(filepath.Join(dir, keystore.FileValidator),
			keystore.ValidatorFile{ChainID: "c", RPC: address})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var once sync.Once
	o := validator.Options{Home: dir, Reserve: 2 * free, Say: func(string) {
		once.Do(func() {
			stopped := (*endpoint.Halted)(nil)
			if _, err := inspect.AskValidator(t.Context(), dir); !errors.As(err, &stopped) || stopped.Code != "DISK_FULL" {
				t.Errorf("its status: %v", err)
			}
		})
		cancel()
	}}
	if err := o.AwaitRoom(ctx, address); err != nil {
		t.Error(err)
	}
}
