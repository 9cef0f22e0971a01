// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/hypershift/support/condition"
	"github.com/openshift/hypershift/support/maas"
)

// sharedFor is how long a rejection counts as evidence that a rejection of another machine has the same cause.
const sharedFor = 10 * time.Minute

// knownCauses maps parts of MAAS messages to causes that all machines of a region, a rack or a subnet share.
var knownCauses = []struct {
	begin, end string
	remedy     string
}{
	{"Deployment operating system ", " is unavailable.", noRack},
	{"Ephemeral operating system ", " is unavailable.", noRack},
	{"No more IPs available", "", "the subnet has no free address; release addresses in MAAS or extend the subnet"},
}

const (
	noRack   = "no rack controller is connected to the region, or the image is not synchronized yet; check the controllers and the images in MAAS"
	noImage  = "MAAS has no such image; import it"
	noAnswer = "MAAS, or the proxy in front of it, serves no calls now"
)

// overloaded holds the HTTP statuses that say nothing about the machine of a call.
var overloaded = []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusGatewayTimeout}

// powerMessages are parts of MAAS messages about the power controller of one machine. Power controllers that do not
// answer cause the same message without a shared cause, so more of them are needed as evidence.
var powerMessages = []string{"power on", "BMC", "Power controller"}

// commonCauses holds the recent rejections by MAAS credentials, message and machine. It shows that several machines
// are rejected for the same cause, which is then not the fault of one of them. A restart loses the state, and the next
// rejections restore it.
type commonCauses struct {
	mu       sync.Mutex
	rejected map[client.ObjectKey]map[string]map[string]time.Time
	// shared holds the time of the last rejection of each machine for a shared cause.
	shared map[string]time.Time
}

func newCommonCauses() *commonCauses {
	return &commonCauses{rejected: map[client.ObjectKey]map[string]map[string]time.Time{}, shared: map[string]time.Time{}}
}

// add records a rejection, and returns the number of other machines that were recently rejected with the same message.
func (c *commonCauses) add(credentials client.ObjectKey, message, systemID string, now time.Time) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	byMessage := c.rejected[credentials]
	if byMessage == nil {
		byMessage = map[string]map[string]time.Time{}
		c.rejected[credentials] = byMessage
	}
	for text, machines := range byMessage {
		for id, at := range machines {
			if now.Sub(at) > sharedFor {
				delete(machines, id)
			}
		}
		if len(machines) == 0 {
			delete(byMessage, text)
		}
	}
	if byMessage[message] == nil {
		byMessage[message] = map[string]time.Time{}
	}
	byMessage[message][systemID] = now
	return len(byMessage[message]) - 1
}

// clear drops all rejections with these credentials: MAAS accepted a deployment, so machines do not share a cause.
func (c *commonCauses) clear(credentials client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.rejected, credentials)
}

func (c *commonCauses) noteShared(systemID string, now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, at := range c.shared {
		if now.Sub(at) > rarely {
			delete(c.shared, id)
		}
	}
	c.shared[systemID] = now
}

// sinceShared returns the time since the last rejection of the machine for a shared cause.
func (c *commonCauses) sinceShared(systemID string, now time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return now.Sub(c.shared[systemID])
}

// sharedCause describes why MAAS would reject any other machine too; empty if the machine may be the cause. A machine
// is not blamed for a shared cause, and another machine would not help.
func (r *Reconciler) sharedCause(s *scope, err error) string {
	var rejection *maas.Error
	if !errors.As(err, &rejection) {
		return ""
	}
	now, m := r.Clock.Now(), s.observed
	message := strconv.Itoa(rejection.StatusCode) + " " + strings.NewReplacer(m.SystemID, "", m.Hostname, "").Replace(rejection.Message)
	others := r.common.add(s.identitySecret(), message, m.SystemID, now)
	cause := knownCause(err, rejection)
	enough := 1
	if aboutPower(rejection.Message) {
		enough = 2
	}
	if cause == "" && others >= enough {
		cause = fmt.Sprintf("MAAS rejected %s with the same message within %s, so the cause is in MAAS or in the request and not in the machine",
			condition.Count(others, "other machine"), sharedFor)
	}
	if cause != "" {
		r.common.noteShared(m.SystemID, now)
	}
	return cause
}

func knownCause(err error, rejection *maas.Error) string {
	if lacksImage(err) {
		return noImage
	}
	if slices.Contains(overloaded, rejection.StatusCode) {
		return noAnswer
	}
	for _, known := range knownCauses {
		if _, after, found := strings.Cut(rejection.Message, known.begin); found && strings.Contains(after, known.end) {
			return known.remedy
		}
	}
	return ""
}

func aboutPower(message string) bool {
	for _, part := range powerMessages {
		if strings.Contains(message, part) {
			return true
		}
	}
	return false
}
