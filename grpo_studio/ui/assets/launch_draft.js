// The draft of a run: nested settings as a RunConfig has them, kept over a reload of the page. No DOM here.

const STORE = "grpo-studio.launch.draft";

export class Draft {
  /** @param presets [{name, settings, own}] @param firstPreset the name to begin with */
  constructor(presets, firstPreset) {
    this.presets = new Map(presets.map((preset) => [preset.name, preset]));
    this.listeners = [];
    this.preset = firstPreset;
    this.name = "";
    this.folds = {};
    this.data = this.presetData();
    this.restore();
  }

  presetData() {
    return structuredClone(this.presets.get(this.preset)?.settings ?? {});
  }

  /** Tell everyone who asked; `field` is the dotted name that moved, null when all did. */
  changed(field = null) {
    this.save();
    for (const listener of this.listeners) listener(field);
  }

  onChange(listener) {
    this.listeners.push(listener);
  }

  get(field) {
    return field.split(".").reduce((value, key) => value?.[key], this.data);
  }

  set(field, value) {
    const keys = field.split(".");
    const last = keys.pop();
    let target = this.data;
    for (const key of keys) target = target[key] ??= {};
    if (JSON.stringify(target[last]) === JSON.stringify(value)) return;
    target[last] = value;
    this.changed(field);
  }

  usePreset(name) {
    if (!this.presets.has(name)) return;
    this.preset = name;
    this.data = this.presetData();
    this.changed();
  }

  /** A preset that was just saved: the draft is now that. */
  addPreset(preset) {
    this.presets.set(preset.name, preset);
    this.usePreset(preset.name);
  }

  /** Whether a setting is as the preset has it. */
  isPreset(field) {
    const preset = this.presets.get(this.preset)?.settings ?? {};
    const value = field.split(".").reduce((found, key) => found?.[key], preset);
    return JSON.stringify(value) === JSON.stringify(this.get(field));
  }

  isUntouched() {
    return JSON.stringify(this.data) === JSON.stringify(this.presetData());
  }

  save() {
    const kept = { preset: this.preset, data: this.data, name: this.name, folds: this.folds };
    try {
      sessionStorage.setItem(STORE, JSON.stringify(kept));
    } catch {
      // A full or forbidden storage costs the draft at a reload, nothing else.
    }
  }

  restore() {
    try {
      const kept = JSON.parse(sessionStorage.getItem(STORE) ?? "null");
      const whole = kept && typeof kept.data === "object" && Array.isArray(kept.data?.rewards);
      if (!whole || !this.presets.has(kept.preset)) return;
      this.preset = kept.preset;
      this.data = kept.data;
      this.name = String(kept.name ?? "");
      this.folds = kept.folds ?? {};
    } catch {
      // A draft that cannot be read is as good as none.
    }
  }
}
