//go:build linux && (amd64 || arm64)

package confine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// warden is the name under which a program is started again to make the box around itself, before it becomes the child.
const warden = "starling-warden"

// order is the instructions of the warden, as JSON in its first argument.
type order struct {
	Level   Level
	Command []string
	Env     []string
	Read    []string
	Devices []string
	Memory  int64
	Scratch int64
	Forks   bool
	Dir     string // where the box's file system is put together, or the scratch folder
}

// command starts this program again as the warden, in namespaces of its own where the level is Full.
func command(ctx context.Context, b Sandbox, dir string) (*exec.Cmd, error) {
	o := order{b.Level, b.Command, b.Env, b.Read, b.Devices, b.Memory, b.Scratch, b.Compilers, dir}
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	switch b.Level {
	case Full:
		o.Env = b.at("/tmp")
		attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
			unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	case Reduced:
		at, err := scratch(dir)
		if err != nil {
			return nil, err
		}
		o.Dir, o.Env = at, b.at(at)
	default:
		return nil, fmt.Errorf("confine: there is no level %q", b.Level)
	}
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, "/proc/self/exe", string(text))
	cmd.Args[0], cmd.SysProcAttr, cmd.Env = warden, attr, []string{"GOMAXPROCS=1"}
	return cmd, nil
}

// init makes this process the warden if it was started as one: before the program that it is part of does anything.
func init() {
	if len(os.Args) != 2 || os.Args[0] != warden {
		return
	}
	status := failure
	err := becomeChild(os.Args[1])
	if errors.Is(err, errProgram) {
		status = missing
	}
	fmt.Fprintf(os.Stderr, "confine: %v\n", err)
	os.Exit(status)
}

var errProgram = errors.New("cannot start")

// becomeChild makes the box and turns the process into the child. It returns if it cannot.
func becomeChild(text string) error {
	runtime.LockOSThread() // most of the following calls change the thread alone
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return err
	}
	if o.Level == Full {
		if err := o.enclose(); err != nil {
			return err
		}
	} else if err := os.Chdir(o.Dir); err != nil {
		return err
	}
	if err := surrender(); err != nil {
		return err
	}
	path, err := unix.BytePtrFromString(o.Command[0])
	if err != nil {
		return err
	}
	args, err := syscall.SlicePtrFromStrings(o.Command)
	if err != nil {
		return err
	}
	env, err := syscall.SlicePtrFromStrings(o.Env)
	if err != nil {
		return err
	}
	filter := filterOf(len(o.Devices) == 0 && !o.Forks, o.Forks)
	if err := o.limit(); err != nil {
		return err
	}
	if err := filter.install(); err != nil {
		return err
	}
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&args[0])),
		uintptr(unsafe.Pointer(&env[0])))
	return fmt.Errorf("%w %s: %w", errProgram, o.Command[0], errno)
}

// limit bounds what the process may allocate and write. It comes last: this program allocates, too.
func (o order) limit() error {
	file := uint64(o.Scratch)
	for _, l := range []struct {
		what  int
		limit uint64
	}{{unix.RLIMIT_CORE, 0}, {unix.RLIMIT_FSIZE, file}, {unix.RLIMIT_DATA, uint64(o.Memory)}} {
		if err := unix.Setrlimit(l.what, &unix.Rlimit{Cur: l.limit, Max: l.limit}); err != nil {
			return fmt.Errorf("limit %d: %w", l.what, err)
		}
	}
	return nil
}

// surrender gives up every capability, for good, and asks for death with the parent: changes of credentials revoke
// that.
func surrender() error {
	for c := uintptr(0); c <= unix.CAP_LAST_CAP; c++ {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if err != nil && err != unix.EINVAL && err != unix.EPERM { // EINVAL: an older kernel; EPERM: nothing to drop
			return fmt.Errorf("capability %d: %w", c, err)
		}
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&head, &none[0]); err != nil {
		return fmt.Errorf("capabilities: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("no new privileges: %w", err)
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death with the parent: %w", err)
	}
	return nil
}

// system is what every program needs to read.
var system = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/alternatives", "/etc/ld.so.cache", "/etc/ld.so.conf",
	"/etc/ld.so.conf.d",
	"/etc/localtime", "/sys/devices/system",
}

var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}

// enclose gives the process a file system of the paths that it may read and of a scratch folder, /tmp.
func (o order) enclose() error {
	root := o.Dir
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("mounts of its own: %w", err)
	}
	if err := unix.Mount("starling", root, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "size=4m,mode=755"); err != nil {
		return fmt.Errorf("file system of its own: %w", err)
	}
	if err := os.MkdirAll(root+"/tmp", 0o700); err != nil {
		return err
	}
	if err := unix.Mount("scratch", root+"/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV,
		fmt.Sprintf("size=%d,mode=700", o.Scratch)); err != nil {
		return fmt.Errorf("scratch folder: %w", err)
	}
	for _, p := range append(append([]string{}, system...), o.Read...) {
		if err := show(root, p, unix.MOUNT_ATTR_RDONLY|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, p := range append(append([]string{}, devices...), o.Devices...) {
		if err := show(root, p, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	if err := os.MkdirAll(root+"/proc", 0o755); err != nil {
		return err
	}
	// not in every container; nothing needs it
	_ = unix.Mount("proc", root+"/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
	return enter(root)
}

// show makes a path of the machine visible under root, with some attributes. One that is not there stays away.
func show(root, path string, attributes uint64) error {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	at := root + path
	if _, err := os.Lstat(at); err == nil && !info.IsDir() {
		return nil // a part of a tree that is visible already
	}
	if err := os.MkdirAll(at[:strings.LastIndexByte(at, '/')], 0o755); err != nil {
		return err
	}
	switch {
	case info.Mode()&os.ModeSymlink != 0:
		to, err := os.Readlink(path)
		if err != nil {
			return err
		}
		return os.Symlink(to, at)
	case info.IsDir():
		err = os.MkdirAll(at, 0o755)
	default:
		err = os.WriteFile(at, nil, 0o600)
	}
	if err != nil {
		return err
	}
	if err := unix.Mount(path, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, at, unix.AT_RECURSIVE, &unix.MountAttr{Attr_set: attributes})
}

// enter makes a folder the root of the process, which cannot see the old one any more, and cannot write to the new one.
func enter(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return fmt.Errorf("new root: %w", err)
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return fmt.Errorf("old root: %w", err)
	}
	if err := os.Chdir("/tmp"); err != nil {
		return err
	}
	return unix.MountSetattr(unix.AT_FDCWD, "/", 0, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}
