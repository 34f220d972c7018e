// Which control shows a setting: finds the place for a problem and brings a person to it.

export class FieldIndex {
  constructor() {
    this.entries = new Map();
  }

  /** @param control {focus(), showProblems(list), sync?()} @param reveal opens the folds around it */
  register(field, control, reveal = () => {}) {
    this.entries.set(field, { control, reveal });
  }

  /** Forget a field and all below it. */
  forget(prefix) {
    for (const field of [...this.entries.keys()]) {
      if (field === prefix || field.startsWith(`${prefix}.`)) this.entries.delete(field);
    }
  }

  /** The nearest registered name: the field, what it is part of, or the first of what it holds. */
  nearest(field) {
    const parts = field.split(".");
    for (let count = parts.length; count > 0; count -= 1) {
      const name = parts.slice(0, count).join(".");
      if (this.entries.has(name)) return name;
    }
    return [...this.entries.keys()].find((name) => name.startsWith(`${parts[0]}.`)) ?? null;
  }

  /** Put every problem beside its field; those that went away are cleared. Returns the fields that have one. */
  distribute(problems) {
    const found = new Map();
    for (const problem of problems) {
      const name = this.nearest(problem.field);
      if (name !== null) found.set(name, [...(found.get(name) ?? []), problem]);
    }
    for (const [name, { control }] of this.entries) control.showProblems(found.get(name) ?? []);
    return [...found.keys()];
  }

  /** Open what hides the field and put the cursor into it. */
  goTo(field) {
    const entry = this.entries.get(this.nearest(field));
    if (!entry) return;
    entry.reveal();
    entry.control.focus();
    entry.control.root?.scrollIntoView({ block: "center" });
  }

  syncAll() {
    for (const { control } of this.entries.values()) control.sync?.();
  }
}
