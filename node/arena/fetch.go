package arena

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/starling-network/starling/canon"
	"github.com/starling-network/starling/compute/model/copied"
	modelfolder "github.com/starling-network/starling/compute/model/folder"
	"github.com/starling-network/starling/node/arena/files"
	"github.com/starling-network/starling/node/download"
	"github.com/starling-network/starling/node/hosting/x402"
)

// patience is how long a file may take, in addition to a second for each MiB that it may have.
const patience = 30 * time.Second

// model gets and reads a model. The error wraps errAbsent or errInvalid if it is a reason.
func (e *evaluation) model(ctx context.Context, name string, digest canon.Digest, url string) (m copied.Model,
	_ error) {
	if err := e.failed[name]; err != nil {
		return m, err
	}
	if err := e.fetch(ctx, name, digest, url); err != nil {
		return m, err
	}
	read, err := modelfolder.Read(os.DirFS(filepath.Join(e.dir, dirModels, name)))
	if err != nil {
		return m, fmt.Errorf("%w: %w", errInvalid, err)
	}
	return copied.Model{Config: read.Config, Tensors: read.Tensors}, nil
}

// fetchAll gets the files of all entries at once, so that a slow server of one entrant takes no time from the others.
func (e *evaluation) fetchAll(ctx context.Context) {
	errs, all := make([]error, len(e.s.All)), sync.WaitGroup{} // of at most arena.MaxEntries
	for i, entry := range e.s.All {
		if entry.Model.IsZero() {
			continue
		}
		all.Go(func() { errs[i] = e.fetch(ctx, fmt.Sprint(entry.Number), entry.Model, entry.URL) })
	}
	all.Wait()
	e.failed = map[string]error{}
	for i, entry := range e.s.All {
		if errs[i] != nil {
			e.failed[fmt.Sprint(entry.Number)] = errs[i]
		}
	}
}

// fetch gets the files of a model, unless they are there. The error wraps errAbsent or errInvalid if it is a reason.
func (e *evaluation) fetch(ctx context.Context, name string, digest canon.Digest, url string) error {
	dir := filepath.Join(e.dir, dirModels, name)
	path := filepath.Join(dir, files.NameList)
	if err := e.get(ctx, url, files.NameList, path, "", files.MaxList); err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return onDisk(err)
	}
	list, err := files.Decode(raw)
	if err == nil && list.Digest() != digest {
		err = errors.New("the list of its files has another digest")
	}
	if err != nil {
		return errors.Join(fmt.Errorf("%w: %w", errAbsent, err), os.Remove(path))
	}
	if list.Bytes() > e.s.Terms.MaxBytes {
		return fmt.Errorf("%w: %d bytes, at most %d", errInvalid, list.Bytes(), e.s.Terms.MaxBytes)
	}
	for _, f := range list.Files {
		if err := e.get(ctx, url, f.Name, filepath.Join(dir, f.Name), hex.EncodeToString(f.Sum[:]),
			int64(f.Bytes)); err != nil {
			return err
		}
	}
	return nil
}

// get gets a file from a folder at an URL, unless it is there. The error wraps errAbsent if it is a reason, and is
// errLater while there is time to try again.
func (e *evaluation) get(ctx context.Context, url, name, path, sum string, most int64) error {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return nil // it was checked before it got its name
	}
	ctx, cancel := context.WithTimeout(ctx, patience+time.Duration(most>>20)*time.Second)
	defer cancel()
	client := x402.NewClient(e.Private)
	defer client.CloseIdleConnections()
	_, err := download.Get(ctx, download.File{URL: strings.TrimSuffix(url, "/") + "/" + name, Path: path, SHA256: sum,
		Max: most, Client: client, Retry: time.Millisecond})
	switch {
	case err == nil:
		return nil
	case ctx.Err() == context.Canceled:
		return ctx.Err()
	case errors.Is(err, download.ErrTooLarge), errors.Is(err, download.ErrDigest), e.late:
		return fmt.Errorf("%w: %w", errAbsent, err)
	}
	return fmt.Errorf("%w: %w", errLater, err)
}
