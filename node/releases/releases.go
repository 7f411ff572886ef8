// Package releases lists, downloads and verifies the programs of a repository of releases, which is laid out as The
// Update Framework says (TUF 1.0, https://theupdateframework.github.io/specification/latest): a threshold of keys has
// signed every program, and neither an older list nor one that was withheld is taken for the latest. It runs no
// program; package supervise does.
package releases

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/theupdateframework/go-tuf/v2/metadata"
	"github.com/theupdateframework/go-tuf/v2/metadata/config"
	"github.com/theupdateframework/go-tuf/v2/metadata/updater"
	"golang.org/x/mod/semver"
)

// Errors of this package.
var (
	ErrUntrusted = errors.New("releases: the list is not signed as the root asks, is too old, or cannot be read")
	ErrNotThere  = errors.New("releases: there is no such release for this port")
)

// Limits of repositories.
const (
	maxArchive = 1 << 30 // bytes
	maxCustom  = 4 << 10 // bytes
	maxRollout = 90 * 24 * time.Hour

	listTimeout  = time.Minute
	fetchTimeout = time.Hour
)

// Source is a repository of releases, as a process uses it.
type Source struct {
	URL  string // its files are in metadata/ and targets/ below; file:///path is a folder
	Root []byte // root.json that is trusted from the start, as it is published once
	Dir  string // keeps the metadata seen last, and the programs
}

// Notes describe an archive, next to its digest. They are signed.
type Notes struct {
	Version string `json:"version"` // v1.2.3
	OS      string `json:"os"`      // as GOOS
	Arch    string `json:"arch"`    // as GOARCH
	// upgrade of the chain that the program has, and programs before it lack: a validator switches at its height, and
	// not before; "": none
	Upgrade string    `json:"upgrade,omitempty"`
	From    time.Time `json:"from,omitzero"` // when machines begin to switch
	// seconds after From within which the machines switch, each at a time that is drawn for it
	Rollout uint64 `json:"rollout_seconds,omitempty"`
}

// Check returns an error unless the notes can be acted on.
func (n Notes) Check() error {
	switch {
	case !semver.IsValid(n.Version) || semver.Canonical(n.Version) != n.Version || len(n.Version) > 64:
		return fmt.Errorf("releases: %q is no version such as v1.2.3", n.Version)
	case len(n.Upgrade) > 64:
		return errors.New("releases: the name of an upgrade has at most 64 bytes")
	case n.Rollout > uint64(maxRollout/time.Second):
		return fmt.Errorf("releases: machines switch within %s at most", maxRollout)
	}
	return nil
}

// Turn is when a machine switches: at a time within the rollout that its name and the version draw, so that machines do
// not switch at once, and not in the same order each time.
func (n Notes) Turn(machine string) time.Time {
	d := sha256.Sum256([]byte(n.Version + "\x00" + machine))
	high, _ := bits.Mul64(binary.BigEndian.Uint64(d[:8]), n.Rollout)
	return n.From.Add(time.Duration(high) * time.Second)
}

// Release is a program for this port.
type Release struct {
	Notes
	Bytes int64 // of the archive

	target *metadata.TargetFiles
}

// Newer reports whether a version is later than another one; every release is later than a program that has none.
func Newer(version, than string) bool { return semver.Compare(version, than) > 0 }

// List fetches the list of releases, and returns those for this port, latest first.
func (s Source) List() ([]Release, error) {
	u, err := s.open(listTimeout)
	if err != nil {
		return nil, err
	}
	return list(u), nil
}

func list(u *updater.Updater) (all []Release) {
	for _, t := range u.GetTopLevelTargets() {
		var n Notes
		if t.Custom == nil || len(*t.Custom) > maxCustom || json.Unmarshal(*t.Custom, &n) != nil || n.Check() != nil {
			continue // it is for a later form of this program
		}
		if n.OS == runtime.GOOS && n.Arch == runtime.GOARCH && t.Length <= maxArchive {
			all = append(all, Release{Notes: n, Bytes: t.Length, target: t})
		}
	}
	slices.SortFunc(all, func(a, b Release) int { return semver.Compare(b.Version, a.Version) })
	return all
}

// open reads the latest metadata, and verifies it.
func (s Source) open(timeout time.Duration) (*updater.Updater, error) {
	c, err := config.New(s.URL+"/metadata", s.Root)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUntrusted, err)
	}
	c.RemoteTargetsURL = s.URL + "/targets"
	c.LocalMetadataDir, c.LocalTargetsDir = filepath.Join(s.Dir, "metadata"), filepath.Join(s.Dir, "archives")
	if err := c.EnsurePathsExist(); err != nil {
		return nil, err
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.RegisterProtocol("file", http.NewFileTransport(http.Dir("/")))
	if err := c.SetDefaultFetcherHTTPClient(&http.Client{Transport: t, Timeout: timeout}); err != nil {
		return nil, err
	}
	u, err := updater.New(c)
	if err == nil {
		err = u.Refresh()
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrUntrusted, s.URL, err)
	}
	return u, nil
}

// Fetch downloads the program of a version, unless it is there, and returns its path. The digest that the keys
// signed is compared before anything is unpacked.
func (s Source) Fetch(version string) (program string, err error) {
	program = s.Program(version)
	if _, err := os.Stat(program); err == nil {
		return program, nil
	}
	u, err := s.open(fetchTimeout)
	if err != nil {
		return "", err
	}
	all := list(u)
	at := slices.IndexFunc(all, func(r Release) bool { return r.Version == version })
	if at < 0 {
		return "", fmt.Errorf("%w: %s for %s/%s", ErrNotThere, version, runtime.GOOS, runtime.GOARCH)
	}
	archive := filepath.Join(s.Dir, "archives", version+".tar.gz")
	if _, _, err := u.DownloadTarget(all[at].target, archive, ""); err != nil {
		return "", fmt.Errorf("releases: %s: %w", version, err)
	}
	err = unpack(archive, filepath.Dir(program))
	return program, errors.Join(err, os.Remove(archive))
}

// Prune deletes the programs of all versions but those that are kept.
func (s Source) Prune(keep ...string) error {
	all, err := os.ReadDir(filepath.Join(s.Dir, "versions"))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, v := range all {
		if !slices.Contains(keep, v.Name()) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(s.Dir, "versions", v.Name())))
		}
	}
	return err
}

// Program is where the program of a version lies once it is fetched.
func (s Source) Program(version string) string {
	name := "starling"
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(s.Dir, "versions", version, name)
}
