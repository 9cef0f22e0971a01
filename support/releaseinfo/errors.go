// SPDX-License-Identifier: Apache-2.0

package releaseinfo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"github.com/openshift/hypershift/support/addressguard"
	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/imageregistry"
	"github.com/openshift/hypershift/support/safeerror"
)

// Reason is the reason why a payload cannot be read.
type Reason string

const (
	// ReasonInvalidReference means that the pull spec or the pull secret is malformed.
	ReasonInvalidReference Reason = "InvalidReference"
	// ReasonNotFound means that the registry does not have the image, or not for this architecture.
	ReasonNotFound Reason = "NotFound"
	// ReasonUnauthorized means that the registry refused the pull secret.
	ReasonUnauthorized Reason = "Unauthorized"
	// ReasonNotARelease means that the image exists but is not a release payload.
	ReasonNotARelease Reason = "NotARelease"
	// ReasonUnreachable means that the registry did not answer in time, or that its answer was invalid.
	ReasonUnreachable Reason = "Unreachable"
	// ReasonNotAllowed means that Options.Allow refuses the image or its mirror, or Options.Guard the registry's address.
	ReasonNotAllowed Reason = "NotAllowed"
)

// mostCause limits the length of the cause in an error, in bytes.
const mostCause = 400

var advice = map[Reason]string{
	ReasonInvalidReference: "check the spelling of the pull spec and the format of the pull secret",
	ReasonNotFound:         "check the repository, tag or digest, and that the image was pushed or mirrored",
	ReasonUnauthorized:     "add credentials for the registry to the pull secret, and check that they may read the repository",
	ReasonNotARelease:      "name a release payload: an OpenShift release image, or one made with `hypershift release build`",
	ReasonNotAllowed:       "name an image of an allowed registry, or have an administrator allow its registry",
	ReasonUnreachable: "check that the registry is up and serves HTTPS, that its name resolves, and that its CA is in the trust bundle " +
		"(--additional-trust-bundle of both the operator and the cluster)",
}

// Error is the error of every Lookup.
type Error struct {
	// Reason can be used as the reason of a condition.
	Reason Reason
	// Image is the pull spec that was looked up.
	Image string
	// Err is the cause.
	Err error
}

func (e *Error) Error() string {
	return fmt.Sprintf("cannot read release image %q: %s; %s", e.Image, e.cause(), advice[e.Reason])
}

// cause describes the error in one line. Network errors are described by their class only: they contain addresses and
// parts of the answer.
func (e *Error) cause() string {
	ours := e.Reason == ReasonInvalidReference || e.Reason == ReasonNotAllowed || errors.Is(e.Err, errNotARelease) ||
		refusedImage(e.Err)
	if !ours || safeerror.Network(e.Err) {
		return safeerror.Text(e.Err)
	}
	return condition.Shorten(strings.Join(strings.Fields(e.Err.Error()), " "), mostCause)
}

// refusedImage reports whether an image is rejected because of its content, such as a layer of an unknown compression.
func refusedImage(err error) bool {
	_, refused := errors.AsType[*imageregistry.ImageError](err)
	return refused
}

func (e *Error) Unwrap() error { return e.Err }

// ReasonOf returns the reason of a Lookup error; empty for any other error.
func ReasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

// classify returns an Error with the reason of a failed registry call.
func classify(image string, err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Reason: reasonOfRegistryError(err), Image: image, Err: err}
}

func reasonOfRegistryError(err error) Reason {
	if errors.Is(err, errNotARelease) || refusedImage(err) {
		return ReasonNotARelease
	}
	if _, refused := errors.AsType[*addressguard.RefusedError](err); refused {
		return ReasonNotAllowed
	}
	te, ok := errors.AsType[*transport.Error](err)
	if !ok || errors.Is(err, context.DeadlineExceeded) {
		return ReasonUnreachable
	}
	switch te.StatusCode {
	case http.StatusNotFound:
		return ReasonNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return ReasonUnauthorized
	default:
		return ReasonUnreachable
	}
}
