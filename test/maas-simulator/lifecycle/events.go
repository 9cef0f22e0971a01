// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"strings"

	"github.com/openshift/hypershift/test/maas-simulator/inventory"
	"github.com/openshift/hypershift/test/maas-simulator/status"
)

// Levels of events. Events of level INFO and above also set the machine's status message.
const (
	levelDebug = "DEBUG"
	levelInfo  = "INFO"
	levelError = "ERROR"
)

// keptEvents is the maximum number of events. The oldest events are deleted first.
const keptEvents = 5000

// event adds an event of a machine.
func (l *Life) event(m *inventory.Machine, level, kind, text string) {
	l.eventBy(m, "unknown", level, kind, text)
}

func (l *Life) eventBy(m *inventory.Machine, user, level, kind, text string) {
	id := l.DB.Next("events")
	l.DB.Events.Put(&inventory.Event{
		ID: id, SystemID: m.SystemID, Hostname: m.Hostname, Username: user, Level: level, Created: l.Clock.Now(), Type: kind, Description: text,
	})
	l.DB.Events.Delete(id - keptEvents)
	if level == levelDebug {
		return
	}
	message, action := kind, ""
	if text != "" {
		message += " - " + text
	}
	m.StatusMessage, m.StatusAction = &message, &action
}

// request adds an event for the request of a user.
func (l *Life) request(m *inventory.Machine, user, kind, comment string) {
	text := "(" + user + ")"
	if comment != "" {
		text += " - " + strings.TrimSpace(comment)
	}
	l.eventBy(m, user, levelDebug, kind, text)
}

// Reported adds an event for a report of the machine's software. A failure after the installation, for example of the
// user-data, leaves the machine Deployed and sets its status message.
func (l *Life) Reported(m *inventory.Machine, description string, failed bool) {
	kind := "Node status event"
	switch {
	case m.Status == status.Commissioning:
		kind = "Node commissioning"
	case m.Status == status.Deploying:
		kind = "Node installation"
	case m.Status == status.Deployed && failed:
		kind = "Node post-installation"
	default:
		failed = false // MAAS has no failure event for this status.
	}
	if failed {
		l.event(m, levelError, kind+" failure", description)
		return
	}
	l.event(m, levelDebug, kind, description)
}
