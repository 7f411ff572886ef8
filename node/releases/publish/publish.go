// Package publish makes and changes repositories of releases, whose keys are held by several people: each signs on a
// computer of their own. It is for scripts/publish and for tests; programs read with package releases.
package publish

import (
	"crypto"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/sigstore/sigstore/pkg/signature"
	"github.com/theupdateframework/go-tuf/v2/metadata"

	"github.com/starling-network/starling/node/releases"
)

// How long signatures count. The online key signs a list again in time (Publish), so that a copy that is withheld from
// machines is found out.
const (
	rootYears = 5
	listYears = 1
	onlineFor = 14 * 24 * time.Hour
)

// Folder is a repository on this disk: metadata/ and targets/ are published, next/ holds unsigned lists.
type Folder string

func (f Folder) published(name string) string { return filepath.Join(string(f), "metadata", name) }
func (f Folder) next(name string) string      { return filepath.Join(string(f), "next", name) }

// NewKey writes a new Ed25519 key (PKCS #8 in PEM), and its public half (PKIX in PEM) next to it.
func NewKey(file string) error {
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return err
	}
	secret, err1 := x509.MarshalPKCS8PrivateKey(private)
	open, err2 := x509.MarshalPKIXPublicKey(public)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	w, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(pem.Encode(w, &pem.Block{Type: "PRIVATE KEY", Bytes: secret}), w.Close(),
		os.WriteFile(file+".pub", pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: open}), 0o644))
}

// Init begins a repository: the given keys, of which a threshold must sign, and the online key, which only says which
// list is the latest. It is published once that many have signed.
func (f Folder) Init(threshold int, online string, keys ...string) error {
	if threshold < 1 || threshold > len(keys) {
		return fmt.Errorf("publish: %d of %d keys cannot sign", threshold, len(keys))
	}
	now := time.Now().UTC().Truncate(time.Second)
	root := metadata.Root(now.AddDate(rootYears, 0, 0))
	root.Signed.ConsistentSnapshot = true
	for _, file := range keys {
		k, err := publicKey(file)
		if err != nil {
			return err
		}
		if err := errors.Join(root.Signed.AddKey(k, metadata.ROOT), root.Signed.AddKey(k, metadata.TARGETS)); err != nil {
			return err
		}
	}
	k, err := publicKey(online)
	if err != nil {
		return err
	}
	err = errors.Join(root.Signed.AddKey(k, metadata.SNAPSHOT), root.Signed.AddKey(k, metadata.TIMESTAMP))
	root.Signed.Roles[metadata.ROOT].Threshold, root.Signed.Roles[metadata.TARGETS].Threshold = threshold, threshold
	for _, dir := range []string{"metadata", "targets", "next"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(string(f), dir), 0o755))
	}
	if _, there := os.Stat(f.published("root.json")); there == nil {
		err = errors.Join(err, errors.New("publish: the repository is there"))
	}
	if err != nil {
		return err
	}
	return errors.Join(root.ToFile(f.next("root.json"), true),
		metadata.Targets(now.AddDate(listYears, 0, 0)).ToFile(f.next("targets.json"), true))
}

// Add puts an archive into the next list, which then lacks all signatures.
func (f Folder) Add(archive string, n releases.Notes) error {
	if err := n.Check(); err != nil {
		return err
	}
	list, there, err := read(metadata.Targets(), f.next("targets.json"))
	if err == nil && !there {
		if list, there, err = read(metadata.Targets(), f.published("targets.json")); err == nil && !there {
			err = fmt.Errorf("publish: %s is no repository", f)
		}
		if err == nil {
			list.Signed.Version++
			list.Signed.Expires = time.Now().UTC().Truncate(time.Second).AddDate(listYears, 0, 0)
		}
	}
	if err != nil {
		return err
	}
	name := filepath.Base(archive)
	if list.Signed.Targets[name] != nil {
		return fmt.Errorf("publish: %s is in the list: what was signed does not change", name)
	}
	target, err := metadata.TargetFile().FromFile(archive, "sha256")
	if err != nil {
		return err
	}
	custom, err := json.Marshal(n)
	if err != nil {
		return err
	}
	target.Path, target.Custom = name, (*json.RawMessage)(&custom)
	list.Signed.Targets[name] = target
	list.ClearSignatures()
	stored := target.Hashes["sha256"].String() + "." + name
	if err := copyFile(archive, filepath.Join(string(f), "targets", stored)); err != nil {
		return err
	}
	return list.ToFile(f.next("targets.json"), true)
}

// Sign adds the signature of a key to the lists that lack signatures.
func (f Folder) Sign(key string) error {
	s, err := signer(key)
	if err != nil {
		return err
	}
	root, err1 := sign(metadata.Root(), f.next("root.json"), s)
	list, err2 := sign(metadata.Targets(), f.next("targets.json"), s)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !root && !list {
		return errors.New("publish: nothing lacks a signature")
	}
	return nil
}

// sign adds a signature to a file, if it is there, in the place of an earlier one by the same key.
func sign[T metadata.Roles](m *metadata.Metadata[T], file string, s signature.Signer) (there bool, err error) {
	m, there, err = read(m, file)
	if err != nil || !there {
		return false, err
	}
	before := m.Signatures
	added, err := m.Sign(s)
	if err != nil {
		return false, err
	}
	m.Signatures = []metadata.Signature{*added}
	for _, x := range before {
		if x.KeyID != added.KeyID {
			m.Signatures = append(m.Signatures, x)
		}
	}
	return true, m.ToFile(file, true)
}

// read reads a file, if it is there.
func read[T metadata.Roles](m *metadata.Metadata[T], file string) (*metadata.Metadata[T], bool, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) {
		return nil, false, nil
	}
	if err == nil {
		m, err = m.FromBytes(text)
	}
	return m, err == nil, err
}

// Publish moves lists that enough keys signed to the published metadata. The online key signs that they are the latest.
// Called again without changes, it renews that statement.
func (f Folder) Publish(online string) error {
	s, err := signer(online)
	if err != nil {
		return err
	}
	root, fresh, err1 := read(metadata.Root(), f.next("root.json"))
	list, changed, err2 := read(metadata.Targets(), f.next("targets.json"))
	rooted, listed := fresh, changed
	if err1 == nil && !fresh {
		root, rooted, err1 = read(metadata.Root(), f.published("root.json"))
	}
	if err2 == nil && !changed {
		list, listed, err2 = read(metadata.Targets(), f.published("targets.json"))
	}
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if !rooted || !listed {
		return fmt.Errorf("publish: %s is no repository", f)
	}
	err = errors.Join(root.VerifyDelegate(metadata.ROOT, root), root.VerifyDelegate(metadata.TARGETS, list))
	if err != nil {
		return fmt.Errorf("publish: not enough keys have signed: %w", err)
	}
	at := time.Now().UTC().Truncate(time.Second).Add(onlineFor)
	version := int64(1)
	last, there, err := read(metadata.Timestamp(), f.published("timestamp.json"))
	if err != nil {
		return err
	}
	if there {
		version = last.Signed.Version + 1
	}
	snapshot, stamp := metadata.Snapshot(at), metadata.Timestamp(at)
	snapshot.Signed.Version, stamp.Signed.Version = version, version
	snapshot.Signed.Meta["targets.json"] = metadata.MetaFile(list.Signed.Version)
	stamp.Signed.Meta["snapshot.json"] = metadata.MetaFile(version)
	_, err1 = snapshot.Sign(s)
	_, err2 = stamp.Sign(s)
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	err = errors.Join(list.ToFile(f.published(fmt.Sprintf("%d.targets.json", list.Signed.Version)), true),
		list.ToFile(f.published("targets.json"), true),
		root.ToFile(f.published(fmt.Sprintf("%d.root.json", root.Signed.Version)), true),
		root.ToFile(f.published("root.json"), true),
		snapshot.ToFile(f.published(fmt.Sprintf("%d.snapshot.json", version)), true),
		stamp.ToFile(f.published("timestamp.json"), true)) // last: it names the others
	if err != nil {
		return err
	}
	if fresh {
		err = os.Remove(f.next("root.json"))
	}
	if changed {
		err = errors.Join(err, os.Remove(f.next("targets.json")))
	}
	return err
}

func signer(file string) (signature.Signer, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKCS8PrivateKey(block)
	if err != nil {
		return nil, fmt.Errorf("publish: %s: %w", file, err)
	}
	return signature.LoadSigner(key, crypto.Hash(0))
}

func publicKey(file string) (*metadata.Key, error) {
	block, err := readPEM(file)
	if err != nil {
		return nil, err
	}
	key, err := x509.ParsePKIXPublicKey(block)
	if err != nil {
		return nil, fmt.Errorf("publish: %s: %w", file, err)
	}
	return metadata.KeyFromPublicKey(key)
}

func readPEM(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("publish: %s is no key in PEM form", file)
	}
	return block.Bytes, nil
}

func copyFile(from, to string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}
