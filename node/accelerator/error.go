package accelerator

import (
	"fmt"

	"github.com/starling-network/starling/node/boxed"
)

// Codes of errors. They are stable: programs may compare them.
const (
	codeProgram   = "DEVICE_NO_PROGRAM" // starling-device is not there
	codeIsolation = "DEVICE_ISOLATION"  // the box cannot be had
	codeTimeout   = "DEVICE_TIMEOUT"    // no answer in time
	codeDied      = "DEVICE_DIED"       // the child ended
	codeProtocol  = "DEVICE_PROTOCOL"   // what it wrote is no answer
	CodeNone      = "DEVICE_NONE"       // there is no driver, or no device of that name
	CodeInexact   = "DEVICE_INEXACT"    // the device lacks something, or fails the suite
	CodeFailed    = "DEVICE_FAILED"     // the driver reports an error
	CodeFaulty    = "DEVICE_FAULTY"     // it computed a step of a unit with other bits than the processor
	CodeMemory    = "DEVICE_MEMORY"     // a job needs more than the largest buffer of the device
	CodeNumerics  = "DEVICE_NUMERICS"   // a job is of a version of the numerics that the device does not compute
)

// fixes say what to do about each.
var fixes = map[string]string{
	codeProgram: "put starling-device of the same release in the folder of starling, or build it: " +
		"go build ./cmd/starling-device",
	codeIsolation: "allow unprivileged user namespaces (sysctl user.max_user_namespaces, " +
		"kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)",
	codeTimeout:  "look for messages of the driver in the log of the system; a device that hangs needs a restart",
	codeDied:     "look at what the child printed, and for messages of the driver in the log of the system",
	codeProtocol: "use starling and starling-device of the same release",
	CodeNone: "install an OpenCL driver (apt install pocl-opencl-icd computes on the processor), or use " +
		"--device cpu; starling bench device lists the devices",
	CodeInexact: "use another device, or --device cpu: the kernels of starling are always exact",
	CodeFaulty: "run starling bench device for long, and look for errors of its memory; until then use another device, " +
		"or --device cpu",
	CodeMemory:   "train smaller batches, or use a device with more memory, or --device cpu",
	CodeNumerics: "nothing: the processor computes the units of such jobs",
	CodeFailed:   "see starling bench device; a smaller batch needs less memory",
}

// Error is why a device cannot do what it is asked.
type Error struct {
	Code string
	What string
	Why  string
}

// maxWhy is how many characters of a child's words are kept.
const maxWhy = 2000

func wrong(code, what, why string) *Error { return &Error{code, what, boxed.Clip(why, maxWhy)} }

// Wrong is an error with a code of this package, and what is wrong and why.
func Wrong(code, what, why string) error { return wrong(code, what, why) }

// Error implements error.
func (e *Error) Error() string {
	if e.Why == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.What)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.What, e.Why)
}

// Explain returns the parts of the error, for a message to a person or a program.
func (e *Error) Explain() (code, place, what, why, fix string) {
	return e.Code, "", e.What, e.Why, fixes[e.Code]
}

// said are the codes that a child may send, with their meaning.
var said = map[string]string{
	CodeNone: "there is no such device", CodeInexact: "the device is not exact", CodeFailed: "the device failed",
}

// reported is the error that a child reports.
func reported(a Answer) *Error {
	what, known := said[a.Code]
	if !known {
		return wrong(codeProtocol, "the child reports an error that there is not", a.Why)
	}
	return wrong(a.Code, what, a.Why)
}
